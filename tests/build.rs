//! How the linker makes the programs of the tests.

fn main() {
    // A preloaded collector looks for `__omp_collector_api` in the program `play-script`.
    println!("cargo::rustc-link-arg-bins=-rdynamic");
    println!("cargo::rerun-if-changed=build.rs");
}
