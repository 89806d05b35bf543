//! Generates the wrappers' source, and sets the linker options for `libomptmpi4.so` or `libomptmpi4c.so`.

use std::path::Path;
use std::{env, fs};

use omptrace_mpi_api::wrappers::{self, Library};

fn main() {
    let mut text = String::new();
    let library = match env!("CARGO_PKG_NAME") {
        "omptrace-mpi4" => Library::Mpi4,
        _ => Library::LargeCount,
    };
    wrappers::write(library, &mut text).expect("a string takes all text");
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&folder).join("wrappers.rs"), text).expect("the wrappers' source can be written");
    // Never unmapped, because a thread may be in a wrapper.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=../mpi4/build.rs");
}
