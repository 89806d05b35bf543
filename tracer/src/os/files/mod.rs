//! The tracer's own files, whose descriptors the program may close, the file systems they are on, and the files of
//! modules.

pub(crate) mod file_system;
pub(crate) mod module_file;
pub(crate) mod protected_fd;
