//! Tests of the library: from traces written as text to exports, facts and findings.

mod amd_devices;
mod annotations;
mod answers;
mod causes;
mod clocks;
mod contract;
mod device_traces;
mod facts;
mod faults;
mod golden;
mod historic;
mod mpi;
mod nvidia_devices;
mod openuh;
mod parts_of_runs;
mod rank_waits;
mod shared;
mod stats;
mod summaries;

use omptrace_trace_builder as fixture;
