//! Names of functions as written in the source.

/// The function behind a linkage name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// The function's demangled name. For code that the compiler moved out of a function, the name of that function.
    Named(String),
    /// Code that a compiler moved out of a function whose name it does not record (`.omp_task_entry.`).
    MovedOut,
    /// A C++ lambda, whose name says only that it can be called.
    Lambda,
}

/// Prefixes of suffixes that OpenMP compilers append to a function's name for generated parts of it:
/// `main.omp_outlined_debug__.3`, `.omp_task_entry..5` (Clang), `main._omp_fn.0` (GCC), `_QQmain..omp_par` (flang).
const OF_OPENMP: [&str; 5] = [".omp_", "._omp_", "..omp_", ".omp.", ".ompvariant"];

/// Words that compilers append to the name of a function for a part, copy or specialization of it.
const OF_COPIES: [&str; 10] =
    ["cold", "default", "hot", "ifunc", "localalias", "resolver", "unlikely", "warm", "__uniq", "cfi_jt"];

/// Further such words, which are followed by a number: `f.constprop.0`, `f.llvm.7`.
const OF_NUMBERED_COPIES: [&str; 8] =
    ["clone", "constprop", "isra", "llvm", "lto_priv", "part", "simdclone", "specialized"];

/// Parses a linkage name.
///
/// In C, C++ and Fortran, only names created by compilers contain a dot. Other languages (Go, Julia, OCaml) and
/// assembly labels use dots in names. So only known additions of compilers are removed.
pub(crate) fn function(linkage_name: &str) -> Function {
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
    match as_written(of_device) {
        "" => Function::MovedOut,
        name => Function::Named(demangled(name)),
    }
}

/// A linkage name without the compilers' additions.
fn as_written(name: &str) -> &str {
    // Mangled C++ names do not contain dots.
    if name.starts_with("_Z") {
        return name.split('.').next().unwrap_or(name);
    }
    let marks = OF_OPENMP.iter().filter_map(|mark| name.find(mark));
    let mut name = marks.min().map_or(name, |at| &name[..at]);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    while let Some((function, last)) = name.rsplit_once('.') {
        let numbered = function.rsplit_once('.').filter(|_| is_number(last));
        name = match numbered {
            Some((function, word)) if OF_NUMBERED_COPIES.contains(&word) || is_copy(word) => function,
            None if is_copy(last) => function,
            // GCC's nested functions, such as gfortran's many internal procedures, always have a number.
            None if is_number(last) && !function.starts_with("julia_") => function,
            _ => break,
        };
    }
    name
}

/// Whether compilers append this word, possibly followed by a number, to a name.
fn is_copy(word: &str) -> bool {
    // Copies of functions for different CPUs (`target_clones`).
    let is_of_processor = ["arch_", "avx", "sse"].iter().any(|name| word.starts_with(name));
    OF_COPIES.contains(&word) || is_of_processor
}

/// Whether a linkage name comes from Rust.
pub(crate) fn is_of_rust(linkage_name: &str) -> bool {
    rustc_demangle::try_demangle(linkage_name).is_ok()
}

/// Function and line of a target region's kernel, as written in the source.
pub fn kernel(linkage_name: &str) -> Option<(String, u32)> {
    let (function, rest) = offloaded(linkage_name)?;
    // Followed by the compilers' additions, and a number if there are several kernels in a line.
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((demangled(function), digits.parse().ok()?))
}

/// The function that a kernel is, or that contains its target region, as written in the source.
pub fn kernel_function(linkage_name: &str) -> String {
    if let Some((function, _)) = kernel(linkage_name) {
        return function;
    }
    // GCC's names are `main._omp_fn.0`, and in PTX `main$_omp_fn$0`.
    let mut marks = ["._omp_fn.", "$_omp_fn$"].into_iter();
    let of_gcc = marks.find_map(|mark| linkage_name.split_once(mark));
    demangled(of_gcc.map_or(linkage_name, |(function, _)| function))
}

/// The parts of the name of a target region's kernel, `__omp_offloading_DEVICE_FILE_FUNCTION_lLINE`: the function, and
/// the line with the rest.
fn offloaded(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix("__omp_offloading_")?;
    let (_device, rest) = rest.split_once('_')?;
    let (_file, rest) = rest.split_once('_')?;
    rest.rsplit_once("_l")
}

fn demangled(name: &str) -> String {
    let options = cpp_demangle::DemangleOptions::new().no_return_type();
    let symbol = name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok()).flatten();
    symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok()).unwrap_or_else(|| name.to_owned())
}

/// A function's name without its parameters, which make C++ names too long to read: `f(int) const` becomes `f`.
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
        // The parentheses belong to the name: `operator()`, `(anonymous namespace)`.
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
            ("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const"),
            ("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"),
            ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"),
            ("_Znonsense", "_Znonsense"),
        ] {
            assert_eq!(function(linkage_name), Function::Named(name.to_owned()), "{linkage_name}");
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
            ("solve.part.0.isra.1.cold", "solve"),
            ("solve.cold.3", "solve"),
            ("solve.llvm.1234567", "solve"),
            ("solve.lto_priv.0", "solve"),
            ("solve.localalias", "solve"),
            ("solve.avx2.0", "solve"),
            ("solve.arch_x86_64_v3", "solve"),
            ("solve.default.1", "solve"),
            ("solve.resolver", "solve"),
            ("solve._omp_fn.0.constprop.1", "solve"),
            ("_ZL5solvev.__uniq.77.llvm.5", "solve()"),
            ("__omp_offloading_fd00_a1b2_main_l12", "main"),
            ("__omp_offloading_fd00_a1b2__ZN4heat4stepEv_l7.omp_outlined", "heat::step()"),
        ] {
            assert_eq!(function(linkage_name), Function::Named(name.to_owned()), "{linkage_name}");
        }
        for linkage_name in
            [".omp_outlined.", ".omp_outlined._debug__.3", ".omp_task_entry..5", "__omp_outlined__3"]
        {
            assert_eq!(function(linkage_name), Function::MovedOut, "{linkage_name}");
        }
    }

    #[test]
    fn names_with_dots_of_their_own_are_kept() {
        for name in [
            "runtime.alpha",
            "runtime.beta",
            "main.main.func1.1",
            "main.init.0",
            "main.(*T).Step",
            "runtime.cold.func1",
            "github.com/a/b.part",
            "camlFoo.bar_123",
            "julia_step.12",
            "a.part_two",
            ".alpha",
        ] {
            let named = Function::Named(name.to_owned());
            assert_eq!(function(name), named, "{name}");
        }
        let of_go = Function::Named("main.step".to_owned());
        assert_eq!(function("main.step._omp_fn.0"), of_go);
    }

    #[test]
    fn functions_inside_others_have_no_number() {
        for name in ["work.0", "work.0._omp_fn.0", "work.12.constprop.0"] {
            assert_eq!(function(name), Function::Named("work".to_owned()), "{name}");
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
            ("f(int)::{lambda(int)#1}::operator()(int) const", "f(int)::{lambda(int)#1}::operator()"),
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
