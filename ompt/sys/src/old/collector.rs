//! The OpenMP Runtime API for Profiling of Sun Microsystems, as declared in its `omp_collector_api.h`. The OpenMP ARB
//! adopted it as a white paper in 2007. A *collector* makes requests and registers for events with one function of the
//! runtime.
//!
//! A call takes a list of requests, and the results are stored in the list:
//!
//! ```text
//! +-----+----+----+-----+-----+...+----+----+----+-----+-----+...+----+
//! | sz  | r# | ec | rsz | mem |   | sz | r# | ec | rsz | mem |   | 0  |
//! +-----+----+----+-----+-----+...+----+----+----+-----+-----+...+----+
//! ```
//!
//! `sz` is the entry's length in bytes including its header of 16, and `r#` is the request. `ec` is the error code, and
//! `rsz` the length of the result in `mem`, or the length needed. An `sz` of 0 ends the list.

use core::ffi::{c_int, c_void};

/// The only symbol that the runtime exports. Returns 0 if all requests were processed, whatever their error codes, else
/// -1.
pub type omp_collector_api_t = unsafe extern "C" fn(arg: *mut c_void) -> c_int;

/// Called on the thread that generates the event.
pub type omp_collector_callback_t = unsafe extern "C" fn(event: OMP_COLLECTORAPI_EVENT);

/// The first four members of an entry.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct omp_collector_header_t {
    /// The entry's length in bytes: a multiple of 4 from 16 on. 0 ends the list.
    pub sz: c_int,
    /// [`OMP_COLLECTORAPI_REQUEST`].
    pub r: c_int,
    /// [`OMP_COLLECTORAPI_EC`]; written by the runtime.
    pub ec: c_int,
    /// Number of bytes returned or, if there was too little space, needed; written by the runtime.
    pub rsz: c_int,
}

open_enum! {
    /// The kind of request.
    OMP_COLLECTORAPI_REQUEST, "OMP_REQ_" {
        /// Must be the first request.
        OMP_REQ_START = 0,
        /// `mem` contains the event, followed by the callback's address.
        OMP_REQ_REGISTER = 1,
        /// `mem` contains the event.
        OMP_REQ_UNREGISTER = 2,
        /// Returns the thread's state and, if it waits, the wait id.
        OMP_REQ_STATE = 3,
        /// Returns the 64-bit id of the thread's parallel region, or 0.
        OMP_REQ_CURRENT_PRID = 4,
        /// Returns the id of the parent region, or 0; for the master thread of a team.
        OMP_REQ_PARENT_PRID = 5,
        OMP_REQ_STOP = 6,
        /// Stops events until [`OMP_REQ_RESUME`].
        OMP_REQ_PAUSE = 7,
        OMP_REQ_RESUME = 8,
    }

    /// The result of a request.
    OMP_COLLECTORAPI_EC, "OMP_ERRCODE_" {
        OMP_ERRCODE_OK = 0,
        /// A size or an alignment is wrong.
        OMP_ERRCODE_ERROR = 1,
        OMP_ERRCODE_UNKNOWN = 2,
        /// Known, but not supported.
        OMP_ERRCODE_UNSUPPORTED = 3,
        /// Made at the wrong time.
        OMP_ERRCODE_SEQUENCE_ERR = 4,
        OMP_ERRCODE_OBSOLETE = 5,
        /// Made by an inappropriate thread.
        OMP_ERRCODE_THREAD_ERR = 6,
        OMP_ERRCODE_MEM_TOO_SMALL = 7,
    }

    /// The event that a callback reports. Every runtime has the first ones; numbers from
    /// [`OMP_EVENT_THR_RESERVED_IMPL`] on are specific to the runtime.
    OMP_COLLECTORAPI_EVENT, "OMP_EVENT_" {
        /// The master thread is about to fork a team.
        OMP_EVENT_FORK = 1,
        /// The master thread continues after the join.
        OMP_EVENT_JOIN = 2,
        OMP_EVENT_THR_BEGIN_IDLE = 3,
        OMP_EVENT_THR_END_IDLE = 4,
        OMP_EVENT_THR_BEGIN_IBAR = 5,
        OMP_EVENT_THR_END_IBAR = 6,
        OMP_EVENT_THR_BEGIN_EBAR = 7,
        OMP_EVENT_THR_END_EBAR = 8,
        OMP_EVENT_THR_BEGIN_LKWT = 9,
        OMP_EVENT_THR_END_LKWT = 10,
        OMP_EVENT_THR_BEGIN_CTWT = 11,
        OMP_EVENT_THR_END_CTWT = 12,
        OMP_EVENT_THR_BEGIN_ODWT = 13,
        OMP_EVENT_THR_END_ODWT = 14,
        OMP_EVENT_THR_BEGIN_MASTER = 15,
        OMP_EVENT_THR_END_MASTER = 16,
        OMP_EVENT_THR_BEGIN_SINGLE = 17,
        OMP_EVENT_THR_END_SINGLE = 18,
        OMP_EVENT_THR_BEGIN_ORDERED = 19,
        OMP_EVENT_THR_END_ORDERED = 20,
        OMP_EVENT_THR_BEGIN_ATWT = 21,
        OMP_EVENT_THR_END_ATWT = 22,
        OMP_EVENT_THR_RESERVED_IMPL = 4096,
    }

    /// The state of a thread.
    OMP_COLLECTOR_API_THR_STATE, "THR_" {
        /// Overhead.
        THR_OVHD_STATE = 1,
        /// Useful work.
        THR_WORK_STATE = 2,
        /// In an implicit barrier.
        THR_IBAR_STATE = 3,
        /// In an explicit barrier.
        THR_EBAR_STATE = 4,
        /// A slave waits for work.
        THR_IDLE_STATE = 5,
        /// Outside of parallel regions.
        THR_SERIAL_STATE = 6,
        /// Reduction.
        THR_REDUC_STATE = 7,
        /// Waiting for a lock.
        THR_LKWT_STATE = 8,
        /// Waiting to enter a critical region.
        THR_CTWT_STATE = 9,
        /// Waiting to execute an ordered region.
        THR_ODWT_STATE = 10,
        /// Waiting to enter an atomic region.
        THR_ATWT_STATE = 11,
        /// Only in TAU's libgomp wrapper, like those that follow: creating a task.
        THR_TASK_CREATE_STATE = 12,
        /// Between tasks.
        THR_TASK_SCHEDULE_STATE = 13,
        /// Suspending a task.
        THR_TASK_SUSPEND_STATE = 14,
        /// Stealing a task.
        THR_TASK_STEAL_STATE = 15,
        /// Ending a task.
        THR_TASK_FINISH_STATE = 16,
    }
}
