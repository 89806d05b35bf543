//! How the linker makes `libomptrace.so`.

fn main() {
    // Never unmapped, though runtimes close it: a thread that waits for the loader's lock while a library is closed can
    // neither be waited for nor lose its code (docs/design/004-writer-and-loader.md).
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
