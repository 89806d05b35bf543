//! The tracer under the reference runtime.
