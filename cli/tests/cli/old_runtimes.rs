//! Runtimes that look for a tool and load none: what `doctor` and `record` say before the run.

use std::path::Path;

use crate::support::{compile, folder, omptrace, run};

/// A runtime like the OMPT group's branch `tr4-stable`: it looks for a tool, and knows no variable that names one.
const LOADS_NONE: &str = "
#include <stdlib.h>
int omp_get_max_threads(void) { return getenv(\"OMP_TOOL\") ? 2 : 1; }
void *ompt_start_tool(unsigned int version, const char *runtime) { return 0; }
";

/// A program with a runtime of TR2 inside, which brings its own empty tool along.
const STATIC_TR2: &str = "
int omp_get_max_threads(void) { return 1; }
__attribute__((weak)) void *ompt_tool(void) { return 0; }
int main(void) { return omp_get_max_threads() - 1; }
";

/// The output of `doctor` for the program `app` in the folder.
fn doctor(folder: &Path) -> String {
    let said = run(omptrace(folder)
        .args(["doctor", "--tool", "libomptrace.so", "./app"])
        .env("LD_LIBRARY_PATH", folder));
    said.stdout
}

#[test]
fn a_runtime_that_loads_no_tool_gets_it_preloaded() {
    let folder = folder("a_runtime_that_loads_no_tool_gets_it_preloaded");
    compile(&folder, "libomp.so", LOADS_NONE, &["-shared", "-fPIC"]);
    let source = "int omp_get_max_threads(void); int main(void) { return omp_get_max_threads() - 1; }";
    compile(&folder, "app", source, &["-L.", "-lomp"]);
    let words = doctor(&folder);
    assert!(words.contains("app: can be traced"), "{words}");
    assert!(words.contains("`omptrace record` preloads"), "{words}");

    // One that knows the variable loads what it names.
    let source = LOADS_NONE.replace("\"OMP_TOOL\"", "getenv(\"OMP_TOOL\") ? \"OMP_TOOL_LIBRARIES\" : \"\"");
    compile(&folder, "libomp.so", &source, &["-shared", "-fPIC"]);
    assert!(!doctor(&folder).contains("preloads"));
}

#[test]
fn a_static_runtime_of_tr2_cannot_be_traced() {
    let folder = folder("a_static_runtime_of_tr2_cannot_be_traced");
    compile(&folder, "app", STATIC_TR2, &[]);
    let words = doctor(&folder);
    assert!(words.contains("app: cannot be traced"), "{words}");
    assert!(words.contains("link the runtime dynamically"), "{words}");
    assert!(!words.contains("OMP_TOOL_VERBOSE_INIT"), "{words}");
}
