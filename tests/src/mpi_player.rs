//! A program that calls every MPI function that the adapter wraps, and an MPI library for it that does nothing.
//!
//! ```text
//! program --words--> libomptmpi.so --words--> library: are these the program's? writes the status, returns the result
//! ```
//!
//! Both are C (`tests/programs/mpi_player.c`), and include calls that are generated from the table of MPI functions, so a
//! function is tested as soon as it has a row. The library has the names, handles and constants of a family of MPI
//! libraries, and no code of any of them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_mpi_api::wrappers::Spelling;
use omptrace_mpi_api::{Class, Function, Parameter, Version, functions};

use crate::env::{Compiler, root};
use crate::sanitized;

/// A family of MPI libraries with the same binary interface, or those of it that have the same functions.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The name in traces.
    pub name: &'static str,
    library: &'static str,
    /// The last version of the standard whose functions the library has.
    version: Version,
    has_large_counts: bool,
    /// The C type of handles.
    handle: &'static str,
    handle_bytes: usize,
    /// C expressions of `MPI_COMM_WORLD`, `MPI_INT` and `MPI_STATUS_IGNORE`; of the last, in Fortran, too.
    world: &'static str,
    integer: &'static str,
    ignore: [&'static str; 2],
    any_source: i32,
    any_tag: i32,
    /// The words of a status: from [`PEER`], with tag [`TAG`] and [`BYTES`] bytes.
    status: &'static [i32],
    /// Further C code of the library, of which the program sees the declarations.
    declarations: &'static str,
    definitions: &'static str,
}

/// The rank that each call names, and from which messages come.
pub const PEER: i32 = 3;
/// The tag that each call names, and that messages have.
pub const TAG: i32 = 7;
/// The size of each message.
pub const BYTES: i32 = 20;
/// The number of elements, of requests and of everything else that is counted.
pub const COUNT: i32 = 2;

const OPEN_MPI: Family = Family {
    name: "openmpi",
    library: "libmpi.so.40",
    version: Version::V3_1,
    has_large_counts: false,
    handle: "void *",
    handle_bytes: 8,
    world: "(long)ompi_mpi_comm_world",
    integer: "(long)ompi_mpi_int",
    ignore: ["0", "(long)mpi_fortran_status_ignore_"],
    any_source: -1,
    any_tag: -1,
    status: &[PEER, TAG, 0, 0, BYTES, 0],
    declarations: "extern char ompi_mpi_comm_world[64], ompi_mpi_int[64], mpi_fortran_status_ignore_[24];\n",
    definitions: "char ompi_mpi_comm_world[64], ompi_mpi_comm_self[64], ompi_mpi_comm_null[64];\n\
                  char ompi_request_null[64], ompi_mpi_int[64], mpi_fortran_status_ignore_[24];\n\
                  void *PMPI_Comm_f2c(int number) { return number ? 0 : ompi_mpi_comm_world; }\n\
                  void *PMPI_Type_f2c(int number) { return number ? 0 : ompi_mpi_int; }\n",
};

const MPICH: Family = Family {
    name: "mpich",
    library: "libmpi.so.12",
    version: Version::V4_0,
    has_large_counts: true,
    handle: "int",
    handle_bytes: 4,
    world: "0x44000000",
    integer: "0x4c000405",
    ignore: ["1", "(long)MPI_F_STATUS_IGNORE"],
    any_source: -2,
    any_tag: -1,
    status: &[BYTES, 0, PEER, TAG, 0],
    declarations: "extern int *MPI_F_STATUS_IGNORE;\n",
    definitions: "static int ignored[8];\nint *MPI_F_STATUS_IGNORE = ignored;\n",
};

/// All families.
pub const FAMILIES: [Family; 4] = [
    OPEN_MPI,
    Family { version: Version::V4_0, ..OPEN_MPI },
    MPICH,
    Family {
        name: "abi",
        library: "libmpi_abi.so.1",
        handle: "void *",
        handle_bytes: 8,
        world: "0x101",
        integer: "0x209",
        ignore: ["0", "(long)MPI_F_STATUS_IGNORE"],
        any_source: -1,
        any_tag: -2,
        status: &[PEER, TAG, 0, 0, 0, 0, 0, 0],
        ..MPICH
    },
];

/// A call that the program makes.
#[derive(Clone, Copy, Debug)]
pub struct PlayedCall {
    /// The function.
    pub function: &'static Function,
    /// The binding.
    pub spelling: Spelling,
}

impl PlayedCall {
    /// The symbol that is called.
    pub fn symbol(&self) -> String {
        let mut symbol = String::new();
        self.spelling.write(self.function.name, &mut symbol).expect("a string takes all text");
        symbol
    }

    /// Whether the first thread makes the call before or after those of all threads.
    pub fn is_made_by_first_thread_only(&self) -> bool {
        matches!(self.function.name, "MPI_Init" | "MPI_Finalize")
    }

    /// A line of `calls.h`.
    fn line(&self, family: &Family) -> String {
        let is_fortran = self.spelling.is_fortran();
        let parameters = self.function.parameters().filter(|it| !(is_fortran && it.is_c_only));
        let parameters: Vec<Parameter> = parameters.collect();
        let mut arguments: Vec<String> =
            parameters.iter().enumerate().map(|(place, it)| self.argument(family, place, it)).collect();
        let status =
            parameters.iter().position(|it| it.kind == "STATUS" && self.function.class != Class::Other);
        let mut error = None;
        if is_fortran {
            error = Some(arguments.len());
            arguments.push(format!("A({}, 4, -9)", arguments.len()));
            for _ in
                parameters.iter().filter(|it| it.kind.starts_with("STRING") && it.kind != "STRING_LENGTH")
            {
                arguments.push(format!("V({}, 4)", arguments.len()));
            }
        }
        let place = |place: Option<usize>| place.map_or("NONE".to_owned(), |place| place.to_string());
        let (status, error) = (place(status), place(error));
        format!("CALL({}, {}, {status}, {error}, {})\n", self.symbol(), arguments.len(), arguments.join(" "))
    }

    /// An argument, in the words of `mpi_player.c`.
    fn argument(&self, family: &Family, place: usize, parameter: &Parameter) -> String {
        let is_fortran = self.spelling.is_fortran();
        let receives =
            matches!(self.function.class, Class::Receive | Class::NonblockingReceive | Class::Probe);
        let is_large = self.spelling == Spelling::LargeCount;
        let (bytes, value) = match parameter.kind {
            "STATUS" if self.function.class != Class::Other => {
                let has_several = ["all", "some"].iter().any(|end| self.function.name.ends_with(end));
                let number = if has_several { COUNT } else { 1 };
                return format!("S({place}, {}, {number})", family.ignore[usize::from(is_fortran)]);
            }
            "RANK" | "RANK_NNI" if receives => (4, format!("W({PEER}, {})", family.any_source)),
            "TAG" if receives => (4, format!("W({TAG}, {})", family.any_tag)),
            "RANK" | "RANK_NNI" => (4, PEER.to_string()),
            "TAG" => (4, TAG.to_string()),
            // `mpi_f08` has one function for all counts.
            kind if kind.contains("XFER_NUM_ELEM") && is_large => (8, COUNT.to_string()),
            "COMMUNICATOR" => (family.handle_bytes, family.world.to_owned()),
            "DATATYPE" => (family.handle_bytes, family.integer.to_owned()),
            // A file's handle is a pointer in each family.
            "FILE" => (8, "77".to_owned()),
            "REQUEST" | "MESSAGE" | "WINDOW" | "SESSION" => (family.handle_bytes, "77".to_owned()),
            "INDEX" => (4, if is_fortran { "1" } else { "0" }.to_owned()),
            "STRING" => (8, "0x20657571657571".to_owned()),
            "OFFSET" | "RMA_DISPLACEMENT" | "WINDOW_SIZE" => (8, COUNT.to_string()),
            _ => (4, COUNT.to_string()),
        };
        let is_own_handle =
            |kind: &str| family.name == "openmpi" && matches!(kind, "COMMUNICATOR" | "DATATYPE");
        match () {
            () if is_fortran && is_own_handle(parameter.kind) => format!("A({place}, 4, 0)"),
            () if is_fortran => {
                format!("A({place}, {}, {value})", if bytes == 8 && is_wide(parameter.kind) { 8 } else { 4 })
            }
            () if parameter.is_pointer => format!("A({place}, {bytes}, {value})"),
            // Nothing is said of the upper half of a word that is passed for an `int`.
            () if bytes == 4 => format!("V({place}, ({value}) & 0xffffffff | 0x5a5a5a5aL << 32)"),
            () => format!("V({place}, {value})"),
        }
    }
}

/// Whether a parameter has 64 bits in Fortran, too.
fn is_wide(kind: &str) -> bool {
    matches!(kind, "STRING" | "OFFSET" | "RMA_DISPLACEMENT" | "WINDOW_SIZE")
}

impl Family {
    /// The calls that the program makes in each round, in order.
    pub fn calls(&self) -> Vec<PlayedCall> {
        let mut all: Vec<PlayedCall> = functions()
            .map(|(_, function)| function)
            .filter(|function| function.is_wrapped() && function.version <= self.version)
            .flat_map(|function| Spelling::ALL.map(|spelling| PlayedCall { function, spelling }))
            .filter(|PlayedCall { function, spelling }| match spelling {
                Spelling::C => true,
                Spelling::LargeCount => function.has_large_count() && self.has_large_counts,
                _ => function.is_fortran(),
            })
            .collect();
        // Stable: MPI is initialized first and finalized last.
        all.sort_by_key(|call| match call.function.name {
            "MPI_Init" => 0,
            "MPI_Finalize" => 2,
            _ => 1,
        });
        all
    }

    /// Builds the library and the program in a folder.
    ///
    /// # Panics
    /// The compiler is missing, or rejects them.
    pub fn build(&self, folder: &Path) -> PathBuf {
        let Family { handle, status, declarations, definitions, .. } = self;
        // Calls that one thread makes before and after those of all threads.
        let (mut first, mut calls, mut last) = (String::new(), String::new(), String::new());
        let mut names = String::new();
        for call in self.calls() {
            let lines = match call.function.name {
                "MPI_Init" => &mut first,
                "MPI_Finalize" => &mut last,
                _ => &mut calls,
            };
            *lines += &call.line(self);
            let _ = writeln!(names, "CALL({},,,,)", call.symbol());
        }
        let words: Vec<String> = status.iter().map(i32::to_string).collect();
        let family = format!(
            "#define HANDLE {handle}\nstatic const int status[] = {{{}}};\n#define STATUS_BYTES (int)sizeof status\n{definitions}",
            words.join(", ")
        );
        let files = [
            ("first.h", first),
            ("calls.h", calls),
            ("last.h", last),
            ("functions.h", names),
            ("family.h", family),
            ("declarations.h", (*declarations).to_owned()),
        ];
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("the folder is ours");
        }
        let library = folder.join(self.library);
        let build = |source: &str, flags: &[&str], out: &Path, after: &[&Path]| {
            let mut command = Command::new(Compiler::Gcc.path());
            command
                .args(["-w", "-O0"])
                .args(flags)
                .arg("-I")
                .arg(folder)
                .arg(root().join(source))
                .args(after)
                .arg("-o")
                .arg(out);
            let output = command.output().expect("the compiler can be run");
            assert!(output.status.success(), "{output:?}");
        };
        let name = format!("-Wl,-soname,{}", self.library);
        build("tests/programs/mpi_player_library.c", &["-shared", "-fPIC", &name], &library, &[]);
        let program = folder.join("player");
        let rpath = format!("-Wl,-rpath,{}", folder.display());
        let further = sanitized::compiler_flags();
        let mut after = vec![library.as_path()];
        after.extend(further.iter().map(Path::new));
        after.push(Path::new("-lm"));
        build("tests/programs/mpi_player.c", &["-pthread", &rpath], &program, &after);
        program
    }
}
