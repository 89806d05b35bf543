//! The enums in events of annotations.

use super::{Field, Value};

own_enums! {
    /// The interface through which a program speaks of itself (`omptrace_annotation_begin`).
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
    /// What a range of the program's is (`omptrace_annotation_begin`). All but `process` and `frame` nest on their thread.
    AnnotationKind {
        /// A range of one thread, nested in its domain.
        range = 1,
        /// A range of the process, which may end on another thread and overlap others.
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
        /// A kernel of OpenACC is launched.
        launch = 12,
        /// Data goes to an OpenACC device.
        upload = 13,
        /// Data comes from an OpenACC device.
        download = 14,
        /// OpenACC waits for a device.
        wait = 15,
        /// An OpenACC device is initialized or shut down.
        device = 16,
    }
    /// What a mark or a value is about (`omptrace_annotation_mark`).
    AnnotationScope {
        /// The thread.
        thread = 1,
        /// The process.
        process = 2,
    }
    /// How the word of a payload is to be read.
    PayloadType {
        /// There is none.
        none = 0,
        /// An unsigned number.
        uint64 = 1,
        /// A signed number.
        int64 = 2,
        /// A `double`.
        float64 = 3,
        /// The number of a text, which `omptrace_object_defined` has.
        text = 4,
    }
    /// What a value is (`omptrace_annotation_value`).
    ValueRole {
        /// A counter has this value.
        counter = 1,
        /// A counter grows by this value.
        increment = 2,
        /// A fact about a range: that of `instance`, or the innermost one of the thread and the domain; or about the process.
        fact = 3,
    }
    /// What happens to memory (`omptrace_annotation_memory`).
    MemoryChange {
        /// It is allocated.
        allocate = 1,
        /// It is freed.
        free = 2,
    }
}
