//! Tasks: their states, dependences, and what delays them.

pub(crate) mod causes;
pub(crate) mod dependences;
pub(crate) mod locks;
pub(crate) mod state;
