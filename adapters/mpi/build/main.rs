//! Generates the wrappers' source and the table of arguments to record for each function, and sets the linker options
//! for `libomptmpi.so`.

mod rows;

use std::path::Path;
use std::{env, fs};

use omptrace_mpi_api::wrappers::{self, Library};

fn main() {
    let mut text = String::new();
    wrappers::write(Library::Mpi3, &mut text).expect("a string takes all text");
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    let write = |name: &str, text: &str| {
        fs::write(Path::new(&folder).join(name), text).expect("the source can be written");
    };
    write("wrappers.rs", &text);
    write("rows.rs", &rows::text());
    // Never unmapped, because a thread may be in a wrapper.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build");
}
