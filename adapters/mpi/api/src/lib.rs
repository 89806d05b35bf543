//! stub
/// f
#[derive(Debug)]
pub struct Function {
    /// n
    pub name: &'static str,
}
/// f
pub fn function(_number: u32) -> Option<&'static Function> {
    None
}
