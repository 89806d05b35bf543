//! Programs that cannot be traced as they are: what `doctor` says of them.

use crate::support::{Said, compile, folder, omptrace, run};

const EMPTY: &str = "int main(void) { return 0; }";

/// What `doctor` says of the program `app` in a folder of the test's own.
fn said(test: &str, flags: &[&str], libraries: &[(&str, &str)]) -> Said {
    let folder = folder(test);
    for (name, source) in libraries {
        compile(&folder, name, source, &["-shared", "-fPIC"]);
    }
    compile(&folder, "app", EMPTY, flags);
    let mut doctor = omptrace(&folder);
    doctor.args(["doctor", "--tool", "libomptrace.so", "./app"]);
    run(doctor.env("LD_LIBRARY_PATH", folder).env("COLUMNS", "500"))
}

#[test]
fn a_program_of_musl_cannot_take_what_is_for_glibc() {
    let loader = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1";
    let said = said("a_program_of_musl", &[loader], &[]);
    let words = &said.stdout;
    assert!(words.contains("app: cannot be traced"), "{words}");
    assert!(words.contains("musl") && words.contains("build the program for glibc"), "{words}");
    assert_eq!(said.status, Some(1), "{said:?}");
}

#[test]
fn a_whole_command_is_taken_as_record_takes_it() {
    let folder = folder("a_whole_command_is_taken");
    compile(
        &folder,
        "app",
        "#include <omp.h>\nint main(void) { return omp_get_num_threads() - 1; }",
        &["-fopenmp"],
    );
    for command in
        [&["--", "./app", "-size", "1", "in file.png"][..], &["./app", "--json"], &["env", "A=1", "./app"]]
    {
        let mut doctor = omptrace(&folder);
        doctor.args(["doctor", "--tool", "libomptrace.so"]).args(command);
        let said = run(doctor.env("COLUMNS", "500"));
        let words = &said.stdout;
        assert!(words.contains("Program ./app: "), "{words} {}", said.stderr);
    }
    let mut doctor = omptrace(&folder);
    let command = ["doctor", "--tool", "libomptrace.so", "--", "nowhere", "./app"];
    let said = run(doctor.args(command));
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(said.stderr.contains("nowhere: no such program"), "{said:?}");
}

#[test]
fn a_program_of_nvidias_compilers_must_be_linked_for_tools() {
    let flags = ["-Wl,--no-as-needed", "-L.", "-lnvomp"];
    let remedy = "-mp=ompt";
    let without = [("libnvomp.so", "int omp_get_max_threads(void) { return 1; }")];
    let said_without = said("nvidias_runtime_without_interface", &flags, &without);
    let words = &said_without.stdout;
    assert!(words.contains("app: cannot be traced"), "{words}");
    assert!(words.contains(remedy), "{words}");

    let with = [(
        "libnvomp.so",
        "void *ompt_start_tool(unsigned int version, const char *runtime) { return \"OMP_TOOL_LIBRARIES\"; }",
    )];
    let words = said("nvidias_runtime_with_interface", &flags, &with).stdout;
    assert!(words.contains("app: can be traced"), "{words}");
    assert!(words.contains(remedy), "{words}");
}
