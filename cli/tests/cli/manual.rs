//! The manual says what the program does.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use omptrace::config::VARIABLES;

const BEGIN: &str = "<!-- variables: written by the test `the_manual_has_every_variable` -->\n";
const END: &str = "<!-- end of variables -->\n";

/// `OMPTRACE_BLESS=1` writes the table.
#[test]
fn the_manual_has_every_variable() {
    let mut table =
        String::from("| variable | default | allowed | meaning |\n| --- | --- | --- | --- |\n");
    for variable in VARIABLES {
        let default = match variable.default {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        writeln!(
            table,
            "| `{}` | {default} | {} | {} |",
            variable.name, variable.allowed, variable.meaning
        )
        .unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/manual.md");
    let manual = fs::read_to_string(&path).unwrap();
    let (before, rest) = manual.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("OMPTRACE_BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(
            found, table,
            "OMPTRACE_BLESS=1 brings the manual up to date"
        );
    }
}
