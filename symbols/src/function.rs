//! Names of functions as the programmer wrote them.

/// The function that a linkage name means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// The function's name, demangled. Of code that the compiler moved out of a function, that function's.
    Named(String),
    /// Code that a compiler moved out of a function, whose name it does not give (`.omp_task_entry.`).
    MovedOut,
    /// A lambda of C++, whose name only says that it can be called.
    Lambda,
}

/// Reads a linkage name.
///
/// C, C++ and Fortran have no dots in names. Compilers mark with them what they made of a function. Parallel regions
/// are `main.omp_outlined_debug__` (LLVM), `main._omp_fn.0` (GCC) and `_QQmain..omp_par` (flang). Parts and
/// specializations are `f.part.0`, `f.constprop.1` and `f.cold`.
pub(super) fn function(linkage_name: &str) -> Function {
    if let Ok(rust) = rustc_demangle::try_demangle(linkage_name) {
        return Function::Named(format!("{rust:#}"));
    }
    if linkage_name.starts_with("__omp_outlined__") {
        return Function::MovedOut;
    }
    if linkage_name == "operator()" {
        return Function::Lambda;
    }
    let of_device = offloaded(linkage_name).map_or(linkage_name, |(function, _)| function);
    match of_device.split('.').next() {
        None | Some("") => Function::MovedOut,
        Some(name) => Function::Named(demangled(name)),
    }
}

/// Whether a linkage name is Rust's.
pub(super) fn is_of_rust(linkage_name: &str) -> bool {
    rustc_demangle::try_demangle(linkage_name).is_ok()
}

/// Function and line of a target region's kernel, as the programmer wrote it.
pub fn kernel(linkage_name: &str) -> Option<(String, u32)> {
    let (function, rest) = offloaded(linkage_name)?;
    // What the compiler made of the kernel, and a number where there are several in a line, follows.
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((demangled(function), digits.parse().ok()?))
}

/// The function that a kernel is, or that a target region's kernel is of, as the programmer wrote it.
pub fn kernel_function(linkage_name: &str) -> String {
    if let Some((function, _)) = kernel(linkage_name) {
        return function;
    }
    // GCC's are `main._omp_fn.0`, and `main$_omp_fn$0` in PTX.
    let mut marks = ["._omp_fn.", "$_omp_fn$"].into_iter();
    let of_gcc = marks.find_map(|mark| linkage_name.split_once(mark));
    demangled(of_gcc.map_or(linkage_name, |(function, _)| function))
}

/// The parts of the name of a target region's kernel, `__omp_offloading_DEVICE_FILE_FUNCTION_lLINE`: function, and line
/// with what follows.
fn offloaded(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix("__omp_offloading_")?;
    let (_device, rest) = rest.split_once('_')?;
    let (_file, rest) = rest.split_once('_')?;
    rest.rsplit_once("_l")
}

fn demangled(name: &str) -> String {
    let options = cpp_demangle::DemangleOptions::new().no_return_type();
    let symbol = name
        .starts_with("_Z")
        .then(|| cpp_demangle::Symbol::new(name).ok())
        .flatten();
    symbol
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| name.to_owned())
}

/// A function's name without its parameters, which make names of C++ longer than anybody reads: `f(int) const` is `f`.
pub fn without_parameters(function: &str) -> &str {
    let mut rest = function;
    for qualifier in [" &&", " &", " volatile", " const"] {
        rest = rest.strip_suffix(qualifier).unwrap_or(rest);
    }
    if !rest.ends_with(')') {
        return function;
    }
    let mut open = 0;
    let begin = rest.rfind(|c| {
        open += i32::from(c == ')') - i32::from(c == '(');
        open == 0
    });
    match begin.map(|begin| &rest[..begin]) {
        // The parentheses are the name's own: `operator()`, `(anonymous namespace)`.
        None | Some("") => function,
        Some(name) if name.ends_with("operator") || name.ends_with("::") => function,
        Some(name) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_as_written() {
        for (linkage_name, name) in [
            ("main", "main"),
            ("heat_", "heat_"),
            ("_Z6smoothIdET_PS0_i", "smooth<double>(double*, int)"),
            ("_ZN4heat4Grid4stepEv", "heat::Grid::step()"),
            (
                "_ZZ4mainENKUliE_clEi",
                "main::{lambda(int)#1}::operator()(int) const",
            ),
            (
                "_RNvCskwGfYPst2Cb_3foo16example_function",
                "foo::example_function",
            ),
            (
                "_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
                "core::ptr::drop_in_place",
            ),
            ("_Znonsense", "_Znonsense"),
        ] {
            assert_eq!(
                function(linkage_name),
                Function::Named(name.to_owned()),
                "{linkage_name}"
            );
        }
    }

    #[test]
    fn moved_code_is_named_by_the_function_that_contains_it() {
        for (linkage_name, name) in [
            ("main.omp_outlined", "main"),
            ("main.omp_outlined_debug__", "main"),
            ("main.omp_outlined_debug__.3", "main"),
            ("foo._omp_fn.0", "foo"),
            ("MAIN__._omp_fn.1", "MAIN__"),
            ("_QQmain..omp_par", "_QQmain"),
            ("_ZN4heat4Grid4stepEv.omp_outlined", "heat::Grid::step()"),
            ("solve.constprop.0", "solve"),
            ("__omp_offloading_fd00_a1b2_main_l12", "main"),
            (
                "__omp_offloading_fd00_a1b2__ZN4heat4stepEv_l7.omp_outlined",
                "heat::step()",
            ),
        ] {
            assert_eq!(
                function(linkage_name),
                Function::Named(name.to_owned()),
                "{linkage_name}"
            );
        }
        for linkage_name in [
            ".omp_outlined.",
            ".omp_outlined._debug__.3",
            ".omp_task_entry..5",
            "__omp_outlined__3",
        ] {
            assert_eq!(function(linkage_name), Function::MovedOut, "{linkage_name}");
        }
    }

    #[test]
    fn parameters_are_left_out() {
        for (function, name) in [
            ("main", "main"),
            ("MAIN__", "MAIN__"),
            ("smooth<double>(double*, int)", "smooth<double>"),
            ("heat::Grid::step() const", "heat::Grid::step"),
            ("heat::Grid::step() const &", "heat::Grid::step"),
            ("apply(void (*)(int), int)", "apply"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("f(int)::{lambda(int)#1}", "f(int)::{lambda(int)#1}"),
            (
                "f(int)::{lambda(int)#1}::operator()(int) const",
                "f(int)::{lambda(int)#1}::operator()",
            ),
            ("main::$_0::operator()", "main::$_0::operator()"),
            ("a::operator()() const", "a::operator()"),
            ("(anonymous namespace)", "(anonymous namespace)"),
            ("a::(anonymous namespace)", "a::(anonymous namespace)"),
            ("f[abi:cxx11](int)", "f[abi:cxx11]"),
            ("<T as F<(A, B)>>::call", "<T as F<(A, B)>>::call"),
            ("odd)", "odd)"),
            (")", ")"),
            ("", ""),
        ] {
            assert_eq!(without_parameters(function), name, "{function}");
        }
    }
}
