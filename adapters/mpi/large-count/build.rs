//! Writes the wrappers' source, and says how the linker makes `libomptmpi4c.so`.

use std::path::Path;
use std::{env, fs};

use omptrace_mpi_api::wrappers::{self, Library};

fn main() {
    let mut text = String::new();
    wrappers::write(Library::LargeCount, &mut text).expect("a string takes all text");
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&folder).join("wrappers.rs"), text).expect("the wrappers' source can be written");
    // Never unmapped: a thread may be in a wrapper.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
