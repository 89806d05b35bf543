//! What the project writes for people: the site, its links and pictures, and tests that it is true.

pub(crate) mod assets;
pub(crate) mod links;
pub(crate) mod screenshots;
pub(crate) mod site;
#[cfg(test)]
pub(crate) mod texts;
#[cfg(test)]
pub(crate) mod true_to_code;
