//! Programs built by GCC: when another runtime is put in libgomp's place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{compile, folder, omptrace, record, run};

const PROGRAM: &str = "
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    const char *preload = getenv(\"LD_PRELOAD\");
    printf(\"%d %s\\n\", omp_get_max_threads(), preload ? preload : \"\");
    return 0;
}
";

/// A library that `omptrace` takes for a runtime that GCC's programs run on; it answers 77.
const STAND_IN: &str = "
int omp_get_max_threads(void) { return 77; }
void GOMP_parallel_reductions(void) {}
void *ompt_start_tool(unsigned int version, const char *runtime) { return 0; }
";

fn stand_in(folder: &Path) -> PathBuf {
    // It is preloaded, too.
    compile(folder, "libomptrace.so", "", &["-shared", "-fPIC"]);
    compile(folder, "libomp.so.5", STAND_IN, &["-shared", "-fPIC"])
}

/// The file names of a list of libraries.
fn names(list: &str) -> String {
    let paths = list.trim().split(':').map(Path::new);
    let names = paths.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    names.collect::<Vec<_>>().join(":")
}

#[test]
fn is_replaced_where_it_is_needed() {
    let folder = folder("is_replaced_where_it_is_needed");
    let libomp = stand_in(&folder);
    compile(&folder, "app", PROGRAM, &["-fopenmp"]);
    let said = run(record(&folder, &["--libomp", "libomp.so.5"], &["./app"]).env("OMP_NUM_THREADS", "3"));
    let list = said.stdout.strip_prefix("77 ").unwrap_or(&said.stderr);
    assert_eq!(names(list), "libomp.so.5:libomptrace.so");
    let line = format!("omptrace: {} replaces GCC's libgomp", libomp.display());
    assert!(said.stderr.starts_with(&line), "{}", said.stderr);
}

#[test]
fn stays_when_asked_to() {
    let folder = folder("stays_when_asked_to");
    stand_in(&folder);
    compile(&folder, "app", PROGRAM, &["-fopenmp"]);
    let options = ["--libgomp", "keep", "--libomp", "libomp.so.5"];
    let said = run(record(&folder, &options, &["./app"]).env("OMP_NUM_THREADS", "3"));
    assert_eq!(said.stdout, "3 \n");
    assert!(said.stderr.contains("needs GCC's libgomp, which has no tools interface"), "{}", said.stderr);
}

/// Functions that the loader would not bind to the stand-in would stay libgomp's.
#[test]
fn stays_where_the_stand_in_lacks_a_function_at_its_version() {
    let folder = folder("stays_where_the_stand_in_lacks_a_function_at_its_version");
    // To libgomp, `omp_fulfill_event` has the version OMP_5.0.1.
    let source = PROGRAM.replace("return 0;", "if (preload == \"\") omp_fulfill_event(0); return 0;");
    compile(&folder, "app", &source, &["-fopenmp"]);
    stand_in(&folder);
    fs::write(folder.join("versions"), "VERSION { omp_fulfill_event; };").unwrap();
    let with_it = format!("{STAND_IN} void omp_fulfill_event(int event) {{}}");
    let versioned = "-Wl,--version-script=versions";
    for (source, flags, is_replaced) in [
        (STAND_IN, &["-shared", "-fPIC"][..], false),
        (&with_it, &["-shared", "-fPIC", versioned], false),
        (&with_it, &["-shared", "-fPIC"], true),
    ] {
        compile(&folder, "libomp.so.5", source, flags);
        let command = &mut record(&folder, &["--libomp", "libomp.so.5"], &["./app"]);
        let said = run(command.env("OMP_NUM_THREADS", "3"));
        assert_eq!(said.stdout.starts_with("77 "), is_replaced, "{}", said.stderr);
        let lacks = "lacks functions that the program calls: omp_fulfill_event (called by ./app)";
        assert_eq!(said.stderr.contains(lacks), !is_replaced, "{}", said.stderr);
    }
}

#[test]
fn is_found_behind_rpath_and_under_another_name() {
    let folder = folder("is_found_behind_rpath_and_under_another_name");
    stand_in(&folder);
    let private = folder.join("private");
    fs::create_dir(&private).unwrap();
    // The program needs a library of its own, which needs the renamed libgomp; only DT_RPATH leads to both.
    let renamed = "libgomp-a34b3233.so.1.0.0";
    let source = "int omp_get_max_threads(void) { return 5; }";
    compile(&private, renamed, source, &["-shared", "-fPIC", &format!("-Wl,-soname,{renamed}")]);
    let source = "int omp_get_max_threads(void); int threads(void) { return omp_get_max_threads(); }";
    let needs = format!("-l:{renamed}");
    compile(
        &private,
        "libmiddle.so",
        source,
        &["-shared", "-fPIC", "-L.", &needs, "-Wl,-soname,libmiddle.so"],
    );
    let source = PROGRAM.replace("omp_get_max_threads()", "threads()").replace("<omp.h>", "<stddef.h>");
    let source = format!("int threads(void);\n{source}");
    let rpath = "-Wl,--disable-new-dtags,-rpath,$ORIGIN/private";
    compile(&folder, "app", &source, &[rpath, "-Lprivate", "-lmiddle", "-Wl,-rpath-link,private"]);

    let said = run(&mut record(&folder, &["--libomp", "libomp.so.5"], &["./app"]));
    assert!(said.stdout.starts_with("77 /"), "{}", said.stderr);
}

#[test]
fn is_seen_behind_a_launcher() {
    let folder = folder("is_seen_behind_a_launcher");
    stand_in(&folder);
    compile(&folder, "app", PROGRAM, &["-fopenmp"]);
    let said = run(&mut record(&folder, &["--libomp", "libomp.so.5"], &["env", "A=1", "./app"]));
    assert!(said.stdout.starts_with("77 "), "{}", said.stdout);

    // By its name alone, too, but not where the word before it is a program that uses OpenMP: there it may be anything.
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let stdout = |program: &[&str]| {
        let mut command = record(&folder, &["--libomp", "libomp.so.5"], program);
        run(command.env("PATH", &path)).stdout
    };
    assert!(stdout(&["env", "A=1", "app"]).starts_with("77 /"));
    let flags = ["-L.", "-l:libomp.so.5", "-Wl,-rpath,$ORIGIN"];
    compile(&folder, "of_clang", PROGRAM, &flags);
    assert_eq!(stdout(&["of_clang", "app"]), "77 \n");
}

#[test]
fn is_replaced_for_interpreters_and_for_scripts_when_asked() {
    let folder = folder("is_replaced_for_interpreters_and_for_scripts_when_asked");
    stand_in(&folder);
    for name in ["python3.13", "Rscript", "run.sh"] {
        let script = folder.join(name);
        let text = if name == "run.sh" { "#!/bin/sh\necho \"$LD_PRELOAD\"\n" } else { "" };
        if text.is_empty() {
            fs::copy("/bin/sh", &script).unwrap();
        } else {
            fs::write(&script, text).unwrap();
        }
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let said = |options: &[&str], program: &[&str]| {
        let options = [&["--libomp", "libomp.so.5"], options].concat();
        names(&run(&mut record(&folder, &options, program)).stdout)
    };
    let preloaded = "libomp.so.5:libomptrace.so";
    for interpreter in ["./python3.13", "./Rscript"] {
        let command = [interpreter, "-c", "echo $LD_PRELOAD"];
        assert_eq!(said(&[], &command), preloaded, "{interpreter}");
    }
    assert_eq!(said(&[], &["./run.sh"]), "");
    assert_eq!(said(&["--libgomp", "replace"], &["./run.sh"]), preloaded);
    // In front, the tracer looks for runtimes that look for no tool.
    assert_eq!(said(&["--libgomp", "replace", "--preload"], &["./run.sh"]), "libomptrace.so:libomp.so.5");
}

/// `LD_PRELOAD` separates names by spaces and colons.
#[test]
fn may_be_replaced_by_what_lies_in_a_folder_of_any_name() {
    for (number, name) in ["a b", "a:b", "a $LIB b"].into_iter().enumerate() {
        let folder = folder(&format!("may_be_replaced_from_{number}"));
        compile(&folder, "app", PROGRAM, &["-fopenmp"]);
        let inside = folder.join(name);
        fs::create_dir(&inside).unwrap();
        let libomp = stand_in(&inside);
        let said = |command: &str| {
            let options = ["--libgomp", "replace", "--libomp"];
            let mut omptrace = omptrace(&folder);
            omptrace.args([command, "--tool", "libomptrace.so"]);
            run(match command {
                "env" => omptrace.args(options).arg(&libomp),
                _ => omptrace.args(options).arg(&libomp).arg("./app"),
            })
        };
        fs::copy(inside.join("libomptrace.so"), folder.join("libomptrace.so")).unwrap();
        let recorded = said("record");
        assert!(recorded.stdout.starts_with("77 /"), "{}", recorded.stderr);
        assert!(!recorded.stderr.contains("ld.so"), "{}", recorded.stderr);
        let refused = said("env");
        assert_eq!(refused.status, Some(2));
        assert!(refused.stderr.contains("which LD_PRELOAD does not allow"), "{}", refused.stderr);
    }
}

#[test]
fn what_cannot_stand_in_is_refused() {
    let folder = folder("what_cannot_stand_in_is_refused");
    compile(&folder, "app", PROGRAM, &["-fopenmp"]);
    compile(&folder, "old.so", "int omp_get_max_threads(void) { return 77; }", &["-shared", "-fPIC"]);
    let said = run(&mut record(&folder, &["--libomp", "old.so"], &["./app"]));
    assert_eq!((said.stdout.as_str(), said.status), ("", Some(2)));
    assert!(said.stderr.contains("not an OpenMP runtime that has a tools interface"), "{}", said.stderr);
}

#[test]
fn doctor_says_how_a_program_can_be_traced() {
    let folder = folder("doctor_says_how_a_program_can_be_traced");
    let libomp = stand_in(&folder);
    compile(&folder, "app", PROGRAM, &["-fopenmp"]);
    let mut doctor = omptrace(&folder);
    doctor.args(["doctor", "--json", "--tool", "libomptrace.so", "--libomp", "libomp.so.5", "./app"]);
    let said = run(&mut doctor);
    let report: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(report["program"]["traceable"], "replaced");
    assert_eq!(report["program"]["command"], "omptrace record -- ./app");
    let reason = report["program"]["reason"].as_str().unwrap();
    assert!(reason.contains(&libomp.display().to_string()), "{reason}");
    let gnu = |runtime: &&serde_json::Value| runtime["vendor"] == "GCC";
    let libgomp = report["runtimes"].as_array().unwrap().iter().find(gnu);
    assert!(libgomp.is_some(), "{}", said.stdout);
}

/// The folders of a Python wheel, or of a module, are not the loader's own.
#[test]
fn ld_library_path_is_searched() {
    let folder = folder("ld_library_path_is_searched");
    let libomp = stand_in(&folder);
    fs::create_dir(folder.join("lib")).unwrap();
    compile(
        &folder,
        "lib/libgomp.so.1",
        "int omp_get_max_threads(void) { return 5; }",
        &["-shared", "-fPIC"],
    );
    compile(&folder, "app", PROGRAM, &["-fopenmp"]);
    let said = run(Command::new(env!("CARGO_BIN_EXE_omptrace"))
        .current_dir(&folder)
        .args(["doctor", "--tool", "libomptrace.so", "--libomp", "libomp.so.5"])
        .env("LD_LIBRARY_PATH", folder.join("lib")));
    let private = format!("{}/lib/libgomp.so.1", libomp.parent().unwrap().display());
    assert!(said.stdout.contains(&private), "{}", said.stdout);
}
