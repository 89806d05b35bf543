//! Devices seen by the tracer: their tracing entry points and clocks
