//! The omptrace program: timeline, exporters, statistics
