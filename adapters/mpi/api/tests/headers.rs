//! Compares the table with the prototypes of each `mpi.h` on the machine: the number of parameters, and which are
//! passed by address. A wrapper that mistakes a handle for the address of one crashes the program.

use std::path::PathBuf;
use std::{env, fs};

use omptrace_mpi_api::{Class, Function, Version, functions};

/// Further headers: a list of paths in the format of `PATH`.
const VARIABLE: &str = "OMPTRACE_MPI_HEADERS";

/// The headers in the directories of Debian's packages.
fn headers() -> Vec<PathBuf> {
    let folders =
        ["/usr/lib", "/usr/include"].map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let folders: Vec<PathBuf> = folders.into_iter().flatten().map(|entry| entry.path()).collect();
    let names = ["openmpi/include/mpi.h", "mpich/mpi.h", "mpich/mpi_proto.h"];
    let installed = folders.iter().flat_map(|folder| names.map(|name| folder.join(name)));
    let named = env::var_os(VARIABLE).unwrap_or_default();
    installed.chain(env::split_paths(&named)).filter(|path| path.is_file()).collect()
}

/// For each parameter of a prototype, whether it is an address; and whether the function takes further arguments.
fn prototype(header: &str, name: &str) -> Option<(Vec<bool>, bool)> {
    let start = header.match_indices(name).find_map(|(at, _)| {
        let before = header[..at].trim_end();
        let is_declared = ["int", "double", "MPI_Aint"].iter().any(|kind| before.ends_with(kind));
        let rest = header[at + name.len()..].trim_start();
        (is_declared && rest.starts_with('(')).then(|| header.len() - rest.len() + 1)
    })?;
    let mut depth = 1;
    let end = header[start..].find(|letter| {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    })?;
    let parameters: Vec<&str> = header[start..start + end].split(',').map(str::trim).collect();
    if matches!(&*parameters, ["void" | ""]) {
        return Some((Vec::new(), false));
    }
    let is_variadic = parameters.last() == Some(&"...");
    let named = &parameters[..parameters.len() - usize::from(is_variadic)];
    Some((named.iter().map(|parameter| parameter.contains(['*', '['])).collect(), is_variadic))
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("*/").map_or("", |(_, rest)| rest))
}

#[test]
fn parameters_are_those_of_headers() {
    let mut compared = 0;
    for path in headers() {
        let bytes = fs::read(&path).unwrap();
        let header = without_comments(&String::from_utf8_lossy(&bytes));
        for (_, function) in functions() {
            let Some((found, is_variadic)) = prototype(&header, function.name) else { continue };
            let parameters = function.parameters().filter(|parameter| parameter.kind != "VARARGS");
            let ours: Vec<bool> = parameters.map(|parameter| parameter.is_pointer).collect();
            assert_eq!(ours, found, "{} in {}", function.name, path.display());
            assert_eq!(is_variadic, function.name == "MPI_Pcontrol");
            compared += 1;
        }
        // MPICH has its prototypes in other headers, and those for file operations in a separate one.
        let has_prototypes = prototype(&header, "MPI_Send").is_some();
        let of_old = |function: &Function| function.version == Version::V3_1 && function.class < Class::File;
        for (_, function) in functions().filter(|(_, function)| has_prototypes && of_old(function)) {
            let is_there = prototype(&header, function.name).is_some();
            assert!(is_there, "{} lacks {}", path.display(), function.name);
        }
    }
    println!("{compared} prototypes compared");
}

#[test]
fn prototypes_are_read() {
    let header = "OMPI_DECLSPEC int MPI_X(const void *buf, int count[], MPI_Comm c);\nint MPI_Y(void);";
    assert_eq!(prototype(header, "MPI_X"), Some((vec![true, true, false], false)));
    assert_eq!(prototype(header, "MPI_Y"), Some((vec![], false)));
    assert_eq!(prototype(header, "MPI_Z"), None);
    assert_eq!(without_comments("a /* b */ c"), "a  c");
}
