//! The MPI functions and their numbers in traces.
//!
//! ```text
//! function(346)  ->  MPI_Send, Class::Send, in all versions of the standard
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`table`] | the functions, one row each |
//! | [`wrappers`] | generates the source of the wrappers that `libomptmpi.so` and its companions export |
//!
//! All bindings of a function have the same number: `MPI_Send`, `MPI_Send_c`, and Fortran's `mpi_send_`.

#![no_std]

mod table;
pub mod wrappers;

/// The function with this number in traces.
pub fn function(number: u32) -> Option<&'static Function> {
    let place = (number as usize).checked_sub(1)?;
    table::FUNCTIONS.get(place)
}

/// All functions with their numbers.
pub fn functions() -> impl Iterator<Item = (u32, &'static Function)> {
    (1..).zip(&table::FUNCTIONS)
}

/// An MPI function.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Name in C.
    pub name: &'static str,
    /// First version of the standard that has the function.
    pub version: Version,
    /// Class of the operation that a call does.
    pub class: Class,
    bindings: u8,
    parameters: &'static str,
}

impl Function {
    const FORTRAN: u8 = 1;
    const LARGE: u8 = 2;

    /// Whether the function has a Fortran binding.
    pub fn is_fortran(&self) -> bool {
        self.bindings & Self::FORTRAN != 0
    }

    /// Whether the function has a variant for large counts, whose C name ends with `_c`.
    pub fn has_large_count(&self) -> bool {
        self.bindings & Self::LARGE != 0
    }

    /// The parameters of the C binding.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter> {
        self.parameters.split_ascii_whitespace().map(Parameter::of)
    }
}

/// The first version of the standard that has a function, as far as libraries differ by it.
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

/// The class of operation that a call does. The numbers are those in traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Class {
    /// Sends, and returns when the buffer may be reused.
    Send = 1,
    /// Receives.
    Receive = 2,
    /// Sends and receives (`MPI_Sendrecv`), including the nonblocking variants.
    Both = 3,
    /// Starts a send.
    NonblockingSend = 4,
    /// Starts a receive.
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
    /// Starts a collective operation.
    NonblockingCollective = 11,
    /// Accesses or synchronizes a window.
    OneSided = 12,
    /// Uses a file.
    File = 13,
    /// Creates or frees communicators, windows and requests; initializes or finalizes MPI; starts or connects
    /// processes.
    Management = 14,
    /// Everything else: queries, datatypes, groups, and other local operations.
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

/// Direction of a parameter's value (for a handle: of the object that it names).
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
    /// Kind in the standard's machine-readable description: `RANK`, `TAG`, `COMMUNICATOR`.
    pub kind: &'static str,
    /// Direction of the value.
    pub direction: Direction,
    /// Whether C passes an address. Fortran passes the address of every parameter.
    pub is_pointer: bool,
    /// Whether the parameter is an array.
    pub is_array: bool,
    /// Whether only the C binding has the parameter.
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
