//! The functions of MPI, as traces number them.
//!
//! ```text
//! function(346)  ->  MPI_Send, Class::Send, in all versions of the standard
//! ```
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`table`] | the functions, a row each |
//! | [`wrappers`] | writes the source of the wrappers that `libomptmpi.so` and its companions export |
//!
//! The bindings of a function have the same number: `MPI_Send`, `MPI_Send_c`, and Fortran's `mpi_send_`.

#![no_std]

mod table;
pub mod wrappers;

/// The function of this number, as in traces.
pub fn function(number: u32) -> Option<&'static Function> {
    let place = (number as usize).checked_sub(1)?;
    table::FUNCTIONS.get(place)
}

/// All functions with their numbers.
pub fn functions() -> impl Iterator<Item = (u32, &'static Function)> {
    (1..).zip(&table::FUNCTIONS)
}

/// A function of MPI.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its name in C.
    pub name: &'static str,
    /// The version of the standard that has it.
    pub version: Version,
    /// What a call of it does.
    pub class: Class,
    bindings: u8,
    parameters: &'static str,
}

impl Function {
    const FORTRAN: u8 = 1;
    const LARGE: u8 = 2;

    /// Whether Fortran has it.
    pub fn is_fortran(&self) -> bool {
        self.bindings & Self::FORTRAN != 0
    }

    /// Whether it has a variant for large counts, whose name in C ends with `_c`.
    pub fn has_large_count(&self) -> bool {
        self.bindings & Self::LARGE != 0
    }

    /// The parameters in C.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> {
        self.parameters.split_ascii_whitespace().map(Parameter::of)
    }
}

/// The first version of the standard that has a function, as far as it matters which libraries have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// MPI 3.1 or earlier.
    V3_1,
    /// MPI 4.0, which also has the variants for large counts.
    V4_0,
    /// MPI 4.1.
    V4_1,
    /// MPI 5.0.
    V5_0,
}

/// What a call does. The numbers are those of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Class {
    /// Sends, and returns when the buffer is free.
    Send = 1,
    /// Receives.
    Receive = 2,
    /// Sends and receives (`MPI_Sendrecv`), also without blocking.
    Both = 3,
    /// Starts to send.
    NonblockingSend = 4,
    /// Starts to receive.
    NonblockingReceive = 5,
    /// Creates or starts a persistent or partitioned operation (`MPI_Send_init`, `MPI_Start`, `MPI_Pready`).
    Persistent = 6,
    /// Waits for requests.
    Wait = 7,
    /// Tests requests.
    Test = 8,
    /// Looks for a message.
    Probe = 9,
    /// Communicates with all members of a communicator.
    Collective = 10,
    /// Starts to communicate with all members.
    NonblockingCollective = 11,
    /// Accesses or synchronizes a window.
    OneSided = 12,
    /// Uses a file.
    File = 13,
    /// Creates or frees communicators, windows and requests; initialization and its end; other processes.
    Management = 14,
    /// All else: queries, datatypes, groups, and what else needs no other process.
    Other = 15,
}

impl Class {
    /// The class with this number.
    pub fn of(number: u32) -> Option<Class> {
        use Class::*;
        const ALL: [Class; 15] = [
            Send,
            Receive,
            Both,
            NonblockingSend,
            NonblockingReceive,
            Persistent,
            Wait,
            Test,
            Probe,
            Collective,
            NonblockingCollective,
            OneSided,
            File,
            Management,
            Other,
        ];
        ALL.get((number as usize).checked_sub(1)?).copied()
    }
}

/// Which way a parameter's value goes (of a handle: what becomes of the object that it names).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To MPI.
    In,
    /// From MPI.
    Out,
    /// Both ways.
    InOut,
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its kind, as the standard's description has it: `RANK`, `TAG`, `COMMUNICATOR`.
    pub kind: &'static str,
    /// Which way its value goes.
    pub direction: Direction,
    /// Whether C passes an address. Fortran passes one of each parameter.
    pub is_pointer: bool,
    /// Whether it is an array.
    pub is_array: bool,
    /// Whether only C has it.
    pub is_c_only: bool,
}

impl Parameter {
    fn of(text: &'static str) -> Parameter {
        let (text, is_c_only) = without(text, '!');
        let (text, is_out) = without(text, '>');
        let (text, is_both) = without(text, '=');
        let (text, is_pointer) = without(text, '&');
        let kind = text.strip_suffix("[]");
        let direction = match (is_out, is_both) {
            (true, _) => Direction::Out,
            (_, true) => Direction::InOut,
            _ => Direction::In,
        };
        Parameter { kind: kind.unwrap_or(text), direction, is_pointer, is_array: kind.is_some(), is_c_only }
    }
}

fn without(text: &'static str, mark: char) -> (&'static str, bool) {
    let rest = text.strip_prefix(mark);
    (rest.unwrap_or(text), rest.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay() {
        for (number, name) in [(1, "MPI_Abi_get_fortran_booleans"), (346, "MPI_Send"), (480, "MPI_Wtime")] {
            assert_eq!(function(number).map(|function| function.name), Some(name));
        }
        assert!(function(0).is_none());
        assert!((1..=16).all(|class| Class::of(class).map_or(class, |class| class as u32) == class));
    }

    #[test]
    fn parameters_are_read() {
        let wait = functions().find(|(_, function)| function.name == "MPI_Waitany").unwrap().1;
        let mut parameters = wait.parameters().skip(1);
        let requests = parameters.next().unwrap();
        assert_eq!((requests.kind, requests.direction), ("REQUEST", Direction::InOut));
        assert!(requests.is_pointer && requests.is_array && !requests.is_c_only);
        assert_eq!(parameters.count(), 2);
    }
}
