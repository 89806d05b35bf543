//! Files of ours: descriptors that stay ours, and the files of modules.

pub(crate) mod module_file;
pub(crate) mod protected_fd;
