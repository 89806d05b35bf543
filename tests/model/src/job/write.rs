//! Writes the traces of a job.

use std::fmt::Write;

use crate::job::program::{Members, Program};
use crate::job::simulate::{Of, Rank, Run};

/// The code addresses of regions.
pub const REGIONS: [u64; 2] = [0x9000, 0x9100];

/// The code address of the work that only the second thread of a region does, and that of the region's barriers inside.
pub fn inside(region: usize) -> [u64; 2] {
    [REGIONS[region] + 0x20, REGIONS[region] + 0x40]
}

/// Name, number in the table of MPI functions, and class.
const FUNCTIONS: [(&str, u64, u32); 14] = [
    ("MPI_Init", 250, 14),
    ("MPI_Comm_split", 91, 14),
    ("MPI_Finalize", 174, 14),
    ("MPI_Send", 346, 1),
    ("MPI_Ssend", 368, 1),
    ("MPI_Recv", 313, 2),
    ("MPI_Irecv", 257, 5),
    ("MPI_Wait", 434, 7),
    ("MPI_Waitall", 435, 7),
    ("MPI_Barrier", 30, 10),
    ("MPI_Allreduce", 19, 10),
    ("MPI_Bcast", 32, 10),
    ("MPI_Reduce", 315, 10),
    ("MPI_Scan", 340, 10),
];

/// The code address of a rank's calls of a function.
pub fn code(rank: usize, function: &str) -> u64 {
    let place = FUNCTIONS.iter().position(|(name, ..)| *name == function).expect("a function");
    0x1_0000 * (rank as u64 + 1) + 0x10 * place as u64
}

/// The traces of a run, as text.
pub fn text(program: &Program, run: &Run) -> String {
    let mut text = String::new();
    for (number, rank) in run.ranks.iter().enumerate() {
        let mut writer = Writer { program, number, lines: Vec::new() };
        writer.rank(rank);
        let pid = 40 + 10 * number;
        writeln!(text, "process rank{number} pid={pid} rank={number} start=0").expect("a string");
        let mpi = format!("\"rank\": {number}, \"size\": {}", program.ranks);
        // Ranks of one host have one clock.
        let host = r#""machine": {"host": "one", "boot": "b1"}"#;
        writeln!(text, r#"metadata {{"mpi": {{"library": "MPI", {mpi}}}, {host}}}"#).expect("a string");
        // Lines of one moment stay in their order.
        writer.lines.sort_by_key(|(time, _)| *time);
        for (_, line) in writer.lines {
            text += &line;
            text.push('\n');
        }
    }
    text
}

struct Writer<'p> {
    program: &'p Program,
    number: usize,
    lines: Vec<(u64, String)>,
}

impl Writer<'_> {
    fn line(&mut self, time: u64, thread: u64, event: &str) {
        self.lines.push((time, format!("{time} {thread} {event}")));
    }

    fn rank(&mut self, rank: &Rank) {
        let pid = 40 + 10 * self.number;
        self.line(0, 1, &format!("thread_info os_tid={pid} name=app"));
        self.line(0, 2, &format!("thread_info os_tid={} name=app", pid + 1));
        self.line(0, 1, "thread_begin type=initial");
        self.line(0, 1, "implicit_task begin parallel=? task=1 team=1 index=1 flags=1");
        self.line(0, 2, "thread_begin type=worker");
        let mut calls = rank.calls.iter().peekable();
        let mut regions = rank.regions.iter().peekable();
        loop {
            match (calls.peek(), regions.peek()) {
                (Some(call), region) if region.is_none_or(|region| call.begin <= region.begin) => {
                    self.call(call);
                    calls.next();
                }
                (_, Some(region)) => {
                    self.region(region);
                    regions.next();
                }
                _ => break,
            }
        }
        self.line(rank.end, 1, "implicit_task end task=1 flags=1");
        self.line(rank.end, 1, "thread_end");
        self.line(rank.end, 2, "thread_end");
    }

    fn region(&mut self, it: &crate::job::simulate::Region) {
        let code = REGIONS[it.region];
        let region = format!("parallel=100 task=1 code={code:#x}");
        self.line(it.begin, 1, &format!("parallel_begin {region} team=2"));
        let [own_work, explicit] = inside(it.region);
        for index in 0..2 {
            let (thread, task) = (index as u64 + 1, 101 + index);
            let member = format!("parallel=100 task={task} team=2 index={index}");
            let work = format!("kind=sections count=1 parallel=100 task={task} code={own_work:#x}");
            self.line(it.begin, thread, &format!("implicit_task begin {member}"));
            for (number, (from, arrivals)) in it.phases().enumerate() {
                let (arrival, until) = (arrivals[index], arrivals[0].max(arrivals[1]) + 1);
                let (kind, code) = match number + 1 == it.arrivals.len() {
                    true => ("barrier_implicit_parallel", code),
                    false => ("barrier_explicit", explicit),
                };
                let barrier = format!("kind={kind} parallel=100 task={task} code={code:#x}");
                if index == 1 {
                    self.line(from, thread, &format!("work begin {work}"));
                    self.line(arrival, thread, &format!("work end {work}"));
                }
                self.line(arrival, thread, &format!("sync_region begin {barrier}"));
                self.line(arrival, thread, &format!("sync_region_wait begin {barrier}"));
                self.line(until, thread, &format!("sync_region_wait end {barrier}"));
                self.line(until, thread, &format!("sync_region end {barrier}"));
            }
            self.line(it.end, thread, &format!("implicit_task end {member}"));
        }
        self.line(it.end, 1, &format!("parallel_end {region}"));
    }

    fn call(&mut self, call: &crate::job::simulate::Call) {
        const NONE: &str = "peer=-4 tag=-4";

        let (begin, end) = match &call.of {
            Of::Nothing if call.function == "MPI_Comm_split" => {
                (format!("object=0x10 {NONE}"), NONE.to_owned())
            }
            Of::Nothing | Of::Requests(_) => (NONE.to_owned(), NONE.to_owned()),
            Of::Peer(peer, tag) => {
                let begin = format!("object=0x10 peer={peer} tag={tag} count=1 datatype=0x20");
                let end = match call.function {
                    "MPI_Recv" => format!("peer={peer} tag={tag} bytes=8"),
                    "MPI_Irecv" => format!("object={:#x} {NONE}", 0xa0 + tag),
                    _ => NONE.to_owned(),
                };
                (begin, end)
            }
            Of::All(of, root) => {
                let object = if *of == Members::All { 0x10 } else { 0x12 };
                let root = root.map_or(-4, |root| root as i64);
                (format!("object={object:#x} peer={root} tag=-4 count=1 datatype=0x20"), NONE.to_owned())
            }
        };
        self.part("begin", call.begin, call.function, &begin);
        self.objects(call);
        self.part("end", call.end, call.function, &end);
    }

    fn part(&mut self, part: &str, time: u64, function: &str, arguments: &str) {
        let (_, number, class) = FUNCTIONS.iter().find(|(name, ..)| *name == function).expect("a function");
        let code = code(self.number, function);
        let call = format!("call_{part} class={class} function={number} domain=1 {arguments} code={code:#x}");
        self.line(time, 1, &call);
    }

    /// What a call defines, waits for and completes.
    fn objects(&mut self, call: &crate::job::simulate::Call) {
        let (own, program) = (self.number, self.program);
        let list = |members: std::ops::Range<usize>| {
            let size = members.len();
            let rank = own - members.start;
            let members: Vec<String> = members.map(|rank| rank.to_string()).collect();
            format!("facts={size},{rank},0,{}", members.join(","))
        };
        match (&call.of, call.function) {
            (_, "MPI_Init") => {
                let all = list(program.members(Members::All));
                self.line(call.begin + 1, 1, &format!("object_defined domain=1 kind=1 handle=0x10 {all}"));
                let alone = format!("handle=0x11 facts=1,0,0,{own}");
                self.line(call.begin + 2, 1, &format!("object_defined domain=1 kind=1 {alone}"));
                self.line(call.begin + 3, 1, "object_defined domain=1 kind=5 handle=0x20 facts=8");
            }
            (_, "MPI_Comm_split") => {
                let of = if own < program.split { Members::Below } else { Members::Above };
                let part = list(program.members(of));
                let defined = format!("object_defined domain=1 kind=1 handle=0x12 parent=0x10 {part}");
                self.line(call.begin + 1, 1, &defined);
            }
            (Of::Requests(requests), _) => {
                let handles: Vec<String> =
                    requests.iter().map(|(handle, ..)| format!("{handle:#x}")).collect();
                let done = requests.iter().map(|(handle, peer, tag)| format!("{handle:#x},{peer},{tag},8"));
                let done: Vec<String> = done.collect();
                self.line(call.begin, 1, &format!("call_objects role=1 numbers={}", handles.join(",")));
                self.line(call.end, 1, &format!("call_objects role=2 numbers={}", done.join(",")));
            }
            _ => {}
        }
    }
}
