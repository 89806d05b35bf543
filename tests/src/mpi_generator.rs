//! Random MPI programs in C that count their own calls and messages.
//!
//! A program is made of a seed. Its steps (`tests/programs/random_mpi.h`) are made by all members of a communicator together. So a
//! program ends on any number of ranks. At its end each rank prints a line of JSON with what it has counted.

use std::fmt::Write as _;

use crate::random::Random;

/// Places for communicators; the first one has `MPI_COMM_WORLD`.
const COMMUNICATORS: u64 = 6;
/// Places for datatypes: the first ones have the standard's.
const TYPES: [(&str, u32); 3] = [("MPI_CHAR", 1), ("MPI_INT", 4), ("MPI_DOUBLE", 8)];
const OWN_TYPES: u64 = 2;
/// More elements than these are sent at another pace: libraries ask for room first.
const FEW: u64 = 200;
const MANY: u64 = 10_000;

/// A program.
#[derive(Debug)]
pub struct MpiProgram {
    /// Its source.
    pub text: String,
    /// The number of ranks to run it on.
    pub ranks: usize,
}

/// The program of `seed`.
pub fn mpi_program(seed: u64) -> MpiProgram {
    let mut random = Random::far_from_others(seed);
    let ranks = 2 + random.below(3) as usize;
    let mut writer = Writer { has_threads: random.one_in(3), random, text: String::new(), tag: 0 };
    let steps = 20 + writer.random.below(30);
    for _ in 0..steps {
        writer.step();
    }
    let init = match (writer.has_threads, writer.random.one_in(2)) {
        (true, _) => "CALL(MPI_Init_thread, &argc, &argv, MPI_THREAD_MULTIPLE, &provided);",
        (false, true) => "CALL(MPI_Init_thread, &argc, &argv, MPI_THREAD_FUNNELED, &provided);",
        (false, false) => "CALL(MPI_Init, &argc, &argv);",
    };
    let types: String = TYPES.iter().map(|(name, bytes)| format!("{{{name}, {bytes}}}, ")).collect();
    let own: String = (0..OWN_TYPES)
        .map(|place| format!("  new_type(&types[{}], {place});\n", TYPES.len() as u64 + place))
        .collect();
    let text = format!(
        "/* Seed {seed}, for {ranks} ranks. */\n\
         #include \"random_mpi.h\"\n\n\
         int main(int argc, char **argv) {{\n  int provided = 0;\n  {init}\n  (void)provided;\n\
         \x20 static char attached[1 << 22];\n  MPI_Buffer_attach(attached, sizeof attached);\n\
         \x20 make_buffers();\n  make_counts();\n\
         \x20 MPI_Comm c[{COMMUNICATORS}];\n  for (int i = 1; i < {COMMUNICATORS}; i++) c[i] = MPI_COMM_NULL;\n\
         \x20 c[0] = MPI_COMM_WORLD;\n\
         \x20 Type types[] = {{{types}{{MPI_DATATYPE_NULL, 0}}, {{MPI_DATATYPE_NULL, 0}}}};\n{own}{}\
         \x20 for (int i = {COMMUNICATORS} - 1; i > 0; i--) free_communicator(&c[i]);\n\
         \x20 print(rank_in(MPI_COMM_WORLD));\n  MPI_Finalize();\n  return 0;\n}}\n",
        writer.text
    );
    MpiProgram { text, ranks }
}

struct Writer {
    random: Random,
    text: String,
    has_threads: bool,
    /// That of the last step.
    tag: u64,
}

impl Writer {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    /// A statement for the members of the communicator in a place.
    fn line(&mut self, communicator: u64, statement: &str) {
        let _ = writeln!(self.text, "  if (c[{communicator}] != MPI_COMM_NULL) {statement};");
    }

    fn tag(&mut self) -> u64 {
        self.tag += 1;
        self.tag
    }

    fn elements(&mut self) -> u64 {
        let most = if self.random.one_in(8) { MANY } else { FEW };
        self.below(most)
    }

    fn type_of(&mut self) -> String {
        format!("types[{}]", self.below(TYPES.len() as u64 + OWN_TYPES))
    }

    /// A place, that of `MPI_COMM_WORLD` more often than others.
    fn communicator(&mut self) -> u64 {
        if self.random.one_in(3) { 0 } else { self.below(COMMUNICATORS) }
    }

    fn step(&mut self) {
        let (c, tag, wild, completion) = (self.communicator(), self.tag(), self.below(8), self.below(8));
        let (elements, seed) = (self.elements(), self.below(1 << 31));
        let of_type = self.type_of();
        match self.below(20) {
            0..=5 => {
                let (shift, how, open) = (self.below(4), self.below(12), self.below(2));
                self.line(
                    c,
                    &format!(
                        "ring(c[{c}], {shift}, {elements}, {of_type}, {tag}, {how}, {wild}, {open}, {completion})"
                    ),
                );
            }
            6..=8 => {
                // Three times as many go to one rank, and the buffers hold them.
                let elements = elements / 4;
                self.line(
                    c,
                    &format!(
                        "exchange(c[{c}], {seed}u, {elements}, {of_type}, {tag}, {wild}, {completion}, 0)"
                    ),
                );
            }
            9 => {
                let (root, synchronous) = (self.below(4), self.below(2));
                self.line(
                    c,
                    &format!("fan_in(c[{c}], {root}, {elements}, {of_type}, {tag}, {synchronous}, {wild})"),
                );
            }
            10 => {
                let (shift, rounds, how) = (self.below(4), 1 + self.below(5), self.below(64));
                self.line(
                    c,
                    &format!(
                        "persistent(c[{c}], {shift}, {elements}, {of_type}, {tag}, {rounds}, {how}, {completion})"
                    ),
                );
            }
            11 => self.line(c, &format!("nothing(c[{c}], {tag})")),
            12 | 13 => {
                let (which, root, elements, in_place) =
                    (self.below(16), self.below(4), self.below(FEW), self.below(2));
                self.line(c, &format!("collective(c[{c}], {which}, {root}, {elements}, {in_place})"));
            }
            14 => {
                let (which, root, elements) = (self.below(8), self.below(4), self.below(FEW));
                self.line(
                    c,
                    &format!(
                        "nonblocking_collective(c[{c}], {which}, {root}, {elements}, {tag}, {completion})"
                    ),
                );
            }
            15 | 16 => self.new_communicator(c, seed),
            17 => {
                let (elements, merged) = (self.below(FEW), self.below(2));
                self.line(
                    c,
                    &format!(
                        "intercommunicator(c[{c}], {elements}, {of_type}, {tag}, {wild}, {completion}, {merged})"
                    ),
                );
            }
            18 if self.has_threads => self.line(c, &format!("threads(c[{c}], {seed}u, {of_type})")),
            _ => {
                let (place, how) = (TYPES.len() as u64 + self.below(OWN_TYPES), self.below(3));
                let _ = writeln!(self.text, "  new_type(&types[{place}], {how});");
            }
        }
    }

    /// In a place that is not the first one's, whose communicator goes.
    fn new_communicator(&mut self, from: u64, seed: u64) {
        let to = 1 + self.below(COMMUNICATORS - 1);
        let how = self.below(8);
        if from != to {
            let _ = writeln!(self.text, "  free_communicator(&c[{to}]);\n  c[{to}] = MPI_COMM_NULL;");
            self.line(from, &format!("new_communicator(c[{from}], &c[{to}], {how}, {seed}u)"));
        }
    }
}
