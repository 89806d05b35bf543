//! The enums in annotation events.

use super::{Field, Value};

own_enums! {
    /// The annotation interface that the program used (`omptrace_annotation_begin`).
    AnnotationSource {
        /// NVIDIA's Tools Extension, NVTX 3.
        nvtx = 1,
        /// Intel's Instrumentation and Tracing Technology.
        itt = 2,
        /// Kokkos Tools.
        kokkos = 3,
        /// OpenACC's profiling interface.
        openacc = 4,
        /// AMD's rocTX.
        roctx = 5,
        /// `omptrace.h`.
        omptrace = 6,
    }
    /// The kind of an annotated range (`omptrace_annotation_begin`). All kinds except `process` and `frame` nest on
    /// their thread.
    AnnotationKind {
        /// A range of one thread, properly nested within its domain.
        range = 1,
        /// A range of the process, which may end on another thread and overlap other ranges.
        process = 2,
        /// A frame: frames of one domain follow each other.
        frame = 3,
        /// A kernel of `Kokkos::parallel_for`.
        parallel_for = 4,
        /// A kernel of `Kokkos::parallel_reduce`.
        parallel_reduce = 5,
        /// A kernel of `Kokkos::parallel_scan`.
        parallel_scan = 6,
        /// A fence of Kokkos.
        fence = 7,
        /// A copy of data.
        copy = 8,
        /// A compute construct of OpenACC.
        compute = 9,
        /// A data construct of OpenACC.
        data = 10,
        /// An update of OpenACC.
        update = 11,
        /// Launching an OpenACC kernel.
        launch = 12,
        /// Copying data to an OpenACC device.
        upload = 13,
        /// Copying data from an OpenACC device.
        download = 14,
        /// Waiting for an OpenACC device.
        wait = 15,
        /// Initializing or shutting down an OpenACC device.
        device = 16,
    }
    /// The scope of a mark or a value (`omptrace_annotation_mark`).
    AnnotationScope {
        /// The thread.
        thread = 1,
        /// The process.
        process = 2,
    }
    /// The type of a payload's word.
    PayloadType {
        /// No payload.
        none = 0,
        /// An unsigned number.
        uint64 = 1,
        /// A signed number.
        int64 = 2,
        /// A `double`.
        float64 = 3,
        /// The number of a text, defined by `omptrace_object_defined`.
        text = 4,
    }
    /// The meaning of a value (`omptrace_annotation_value`).
    ValueRole {
        /// The new value of a counter.
        counter = 1,
        /// An amount to add to a counter.
        increment = 2,
        /// A fact about the range `instance`, about the innermost range of the thread and domain, or about the process.
        fact = 3,
    }
    /// A change of memory (`omptrace_annotation_memory`).
    MemoryChange {
        /// The memory is allocated.
        allocate = 1,
        /// The memory is freed.
        free = 2,
    }
}
