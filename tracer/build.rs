//! Linker options for `libomptrace.so`.

fn main() {
    // The library is never unmapped, even if runtimes close it: while it is being closed, one of its threads may wait
    // for the loader's lock. Nothing can wait for that thread then, and it must not lose its code
    // (docs/design/004-writer-and-loader.md).
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
