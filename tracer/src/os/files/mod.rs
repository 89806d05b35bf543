//! The tracer's own files, whose descriptors the program may close, and the files of modules.

pub(crate) mod module_file;
pub(crate) mod protected_fd;
