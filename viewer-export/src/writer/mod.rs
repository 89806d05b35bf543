//! Code that formats share: output, files with several sinks, and the writing of numbers and texts.

pub(crate) mod buffers;
pub(crate) mod decimal;
pub(crate) mod interned_text;
pub(crate) mod json;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod protobuf;
pub(crate) mod share;
pub(crate) mod split_output;
pub(crate) mod spooled_sections;
pub(crate) mod system_ids;
pub(crate) mod turns;
