//! Compares the offsets in CUPTI's records with NVIDIA's headers, using a C compiler, for all versions of each
//! structure.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use omptrace_device::cupti::layout::{LAYOUTS, Layout, knows};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace")
}

/// The directory of CUPTI's headers with this major version.
fn headers(major: u32) -> PathBuf {
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    };
    let headers = target.join(format!("tools/cupti/{major}"));
    assert!(headers.exists(), "no {}: run `cargo xtask setup`", headers.display());
    headers
}

/// The names of a row's structure in a header, with all numbers.
fn structures(layout: &Layout, header: &str) -> Vec<String> {
    let base = format!("CUpti_Activity{}", layout.name);
    if layout.first_number == 0 {
        return vec![base];
    }
    let is_there = |number: &u32| header.contains(&format!("}} {base}{number};"));
    let numbers = (layout.first_number..100).filter(is_there);
    numbers.map(|number| format!("{base}{number}")).collect()
}

/// A C file that compiles only if the table is right; `shift` is added to all offsets.
fn source(major: u32, shift: usize) -> String {
    let read = |name: &str| fs::read_to_string(headers(major).join(name)).expect("a header");
    let header = read("cupti_activity.h") + &read("cupti_activity_deprecated.h");
    let mut text = "#include <stddef.h>\n#include <cupti_activity.h>\n".to_owned();
    let mut compared = 0;
    for layout in LAYOUTS {
        let structures = structures(layout, &header);
        assert!(!structures.is_empty(), "CUPTI {major} has no {layout:?}");
        for structure in &structures {
            for field in layout.fields {
                let (name, offset) = (field.name, field.offset + shift);
                let _ = writeln!(
                    text,
                    "_Static_assert(offsetof({structure}, {name}) == {offset}, \"{structure}.{name}\");\n\
                     _Static_assert(sizeof((({structure} *)0)->{name}) == {}, \"{structure}.{name}\");",
                    field.bytes,
                );
                compared += 1;
            }
            let _ =
                writeln!(text, "_Static_assert(sizeof({structure}) >= {}, \"{structure}\");", layout.bytes);
        }
        for (kind, number) in layout.kinds {
            let _ = writeln!(text, "_Static_assert(CUPTI_ACTIVITY_KIND_{kind} == {number}, \"{kind}\");");
        }
    }
    text += "_Static_assert(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 == 3, \"\");\n\
             _Static_assert(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1 == 4, \"\");\n\
             _Static_assert(CUPTI_ACTIVITY_KIND_DRIVER == 4, \"\");\n\
             _Static_assert(CUPTI_ACTIVITY_KIND_RUNTIME == 5, \"\");\n\
             _Static_assert(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED == 1, \"\");\n\
             _Static_assert(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD == 1, \"\");\n\
             _Static_assert(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH == 2, \"\");\n\
             _Static_assert(CUPTI_ACTIVITY_MEMORY_KIND_PINNED == 2, \"\");\n\
             _Static_assert(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE == 2, \"\");\n\
             _Static_assert(CUPTI_ERROR_MAX_LIMIT_REACHED == 12, \"\");\n\
             _Static_assert(CUPTI_ERROR_NOT_INITIALIZED == 15, \"\");\n\
             _Static_assert(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES == 35, \"\");\n";
    assert!(compared > 60, "CUPTI {major}: {compared} fields");
    text
}

fn compile(major: u32, source: &str) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("layouts.c");
    fs::write(&file, source).expect("it can be written");
    Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-I"])
        .arg(root().join("tests/tools/cuda"))
        .arg("-I")
        .arg(headers(major))
        .arg(file)
        .output()
        .expect("a C compiler")
}

#[test]
fn fields_lie_where_nvidias_headers_have_them() {
    for major in [12, 13] {
        let output = compile(major, &source(major, 0));
        assert!(output.status.success(), "CUPTI {major}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_field_elsewhere_is_found() {
    let output = compile(12, &source(12, 4));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("CUpti_ActivityKernel9.start"), "{words}");
}

#[test]
fn the_versions_of_the_headers_are_known() {
    for major in [12, 13] {
        let header = headers(major).join("cupti_version.h");
        let header = fs::read_to_string(header).expect("a header");
        let version = header.lines().find_map(|line| line.strip_prefix("#define CUPTI_API_VERSION "));
        let version = version.and_then(|version| version.trim().parse().ok());
        assert!(version.is_some_and(knows), "{version:?}");
    }
}
