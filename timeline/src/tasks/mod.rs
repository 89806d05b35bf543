//! Tasks: their states, dependences and waits.

pub(crate) mod causes;
pub(crate) mod dependences;
pub(crate) mod locks;
pub(crate) mod state;
