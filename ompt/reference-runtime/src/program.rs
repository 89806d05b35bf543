//! The program `reference-runtime`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use super::{Report, Script, play};

/// Plays the script in the file named by the first argument, or from stdin, and prints what was played.
pub fn run() -> ExitCode {
    match read_script().and_then(|script| play(&script, print)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("reference-runtime: {message}");
            ExitCode::FAILURE
        }
    }
}

fn read_script() -> Result<Script, String> {
    let mut json = String::new();
    match std::env::args_os().nth(1) {
        Some(path) => File::open(&path)
            .and_then(|mut file| file.read_to_string(&mut json))
            .map_err(|error| format!("{}: {error}", path.display()))?,
        None => io::stdin().read_to_string(&mut json).map_err(|error| format!("stdin: {error}"))?,
    };
    serde_json::from_str(&json).map_err(|error| format!("the script is wrong: {error}"))
}

fn print(report: &Report) {
    let mut json = serde_json::to_vec(report).expect("a report has no keys but strings");
    json.push(b'\n');
    // Failure is ignored: the reader has closed stdout.
    let _ = io::stdout().write_all(&json);
}
