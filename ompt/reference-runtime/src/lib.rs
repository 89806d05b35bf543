//! A miniature OpenMP runtime that is nothing but tools interface. It finds and loads a tool as OpenMP 5.2, 19.2, or a
//! draft of it says. It offers the tool all entry points of the host, and plays a [`Script`] of callbacks on real threads.
//!
//! This runtime delivers any callback with any arguments in any order, as no real one does: null pointers, unknown
//! numbers, ends without beginnings. It finalizes the tool while a storm of threads calls back. It complements real
//! runtimes, and does not replace them.
//!
//! A tool is loaded once per process, so the program `reference-runtime` plays one script per process:
//!
//! ```text
//! $ cat script.json
//! {"rounds": [{"threads": [[
//!     {"call": {"thread_begin": {"thread_type": 1, "thread_data": {"slot": 0}}}},
//!     {"call": {"thread_end": {"thread_data": {"slot": 0}}}}
//! ]]}]}
//! $ OMP_TOOL_LIBRARIES=/path/to/libtool.so reference-runtime < script.json
//! {"rounds":[{"tool":{...},"threads":[{"os_tid":4711,"played":[
//!     {"event":"thread_begin","thread_type":"initial","thread_data":"0x1"},
//!     {"event":"thread_end","thread_data":"0x1"}],...
//! ```
//!
//! Each line played is spelled as `omptrace dump --json` spells it, without `stream` and `time_ns`: what a tool
//! recorded can be compared for equality.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`script`] | what is to be played |
//! | [`call`] | the table of callbacks: one row makes the call, its line and its generator |
//! | [`argument`] | what a row's arguments can be: how each is passed and shown |
//! | [`collector`] | the Collector API of 2007, for preloaded tools |
//! | [`tr2`] | OMPT of 2014, for preloaded tools |
//! | [`dialect`] | the generations of the interface that it speaks |
//! | [`tool`] | finds and initializes the tool |
//! | `active_tool` | the tool that is active, and its end |
//! | `callback_table` | the callbacks that it registered |
//! | `entry_points` | what the tool can ask |
//! | `context` | what a thread is in the midst of, for those answers |
//! | [`device`], [`offload`] | devices that can be traced, and target regions on them |
//! | [`fork`] | forks in the midst of it |
//! | [`player`] | plays a script |
//! | `report` | what was played |
//! | [`program`] | the program `reference-runtime` |
//! | `generate` | scripts for property tests; only with the feature of that name |

mod active_tool;
pub mod argument;
pub mod call;
mod callback_table;
mod context;
pub mod device;
pub mod dialect;
mod entry_points;
pub mod fork;
#[cfg(feature = "generate")]
pub mod generate;
mod old;
pub mod player;
pub mod program;
mod report;
pub mod script;
pub mod tool;

pub use call::Call;
pub use device::Device;
pub use device::offload;
pub use device::offload::Offload;
pub use dialect::Dialect;
pub use fork::{ChildEnd, Fork};
pub use old::collector::Collect;
pub use old::tr2::Tr2;
pub use old::{collector, tr2};
pub use player::{Report, play};
pub use script::{End, How, Round, Script, Step};
