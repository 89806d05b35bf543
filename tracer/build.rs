//! How the linker makes `libomptrace.so`.

fn main() {
    // Never unmapped, though runtimes close it. A thread may wait for the loader's lock while a library is closed. Nothing
    // can wait for it then, and it must not lose its code (docs/design/004-writer-and-loader.md).
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
