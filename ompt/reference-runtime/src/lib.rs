//! A miniature OpenMP runtime that consists only of a tools interface. It finds and loads a tool as specified by OpenMP
//! 5.2, 19.2, or a draft. It offers the tool all entry points of the host, and plays a [`Script`] of callbacks on real
//! threads.
//!
//! Unlike real runtimes, it delivers any callback with any arguments in any order: null pointers, unknown numbers, ends
//! without begins. It finalizes the tool while many threads call back. It complements real runtimes, and does not
//! replace them.
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
//! Each line has the format of `omptrace dump --json` without `stream` and `time_ns`, so that it can be compared with
//! what a tool has recorded.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`script`] | the script to play |
//! | [`call`] | the table of callbacks: a row defines the call, its line and its generator |
//! | [`argument`] | the types of arguments: how each is passed and shown |
//! | [`collector`] | the Collector API of 2007, for preloaded tools |
//! | [`tr2`] | OMPT of 2014, for preloaded tools |
//! | [`dialect`] | the supported generations of the interface |
//! | [`tool`] | finds and initializes the tool |
//! | `active_tool` | the active tool, and its finalization |
//! | `callback_table` | the callbacks that the tool has registered |
//! | `entry_points` | the entry points of the host |
//! | `context` | the state of a thread, for entry points |
//! | [`device`], [`offload`] | devices that can be traced, and target regions on them |
//! | [`fork`] | forks while threads are playing |
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
