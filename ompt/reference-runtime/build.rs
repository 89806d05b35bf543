//! Linker options for the program.

fn main() {
    // A preloaded collector looks for `__omp_collector_api` in the program `reference-runtime`.
    println!("cargo::rustc-link-arg-bins=-rdynamic");
    println!("cargo::rerun-if-changed=build.rs");
}
