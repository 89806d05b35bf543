//! Writes the traces of a large MPI job into a folder: `job FOLDER RANKS MESSAGES`.
//!
//! In each step, each rank computes, receives from the rank before it, sends to the rank after it, and waits for the receive. All ranks
//! take part in an `MPI_Allreduce` every hundred steps.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use omptrace_model::random::Random;

/// Steps between two collective operations.
const STEPS: u64 = 100;

/// A rank's next event is at `now`; its lines are written if it is chosen.
struct Rank {
    now: u64,
    random: Random,
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let [_, folder, ranks, messages] = &words[..] else { panic!("job FOLDER RANKS MESSAGES") };
    let (ranks, messages): (usize, u64) =
        (ranks.parse().expect("a number of ranks"), messages.parse().expect("a number of messages"));
    fs::create_dir_all(folder).expect("a folder");
    for chosen in 0..ranks {
        let text = text(chosen, ranks, messages / ranks as u64);
        let trace = &omptrace_trace_builder::parse(&text)[0];
        let path = Path::new(folder).join(format!("rank{chosen}.omptrace"));
        fs::write(path, trace.bytes()).expect("a writable folder");
    }
}

/// The trace of one rank. All are executed for that, since they wait for each other.
fn text(chosen: usize, size: usize, steps: u64) -> String {
    let mut text = format!("process app pid={} rank={chosen} start=0\n", 100 + chosen);
    let host = r#""machine": {"host": "one", "boot": "b1"}"#;
    writeln!(text, r#"metadata {{"mpi": {{"library": "MPI", "rank": {chosen}, "size": {size}}}, {host}}}"#)
        .expect("a string");
    let members: Vec<String> = (0..size).map(|rank| rank.to_string()).collect();
    let call = |part: &str, time: u64, (class, function): (u32, u32), arguments: &str| {
        let code = 0x1000 + 16 * function;
        format!(
            "{time} 1 call_{part} class={class} function={function} domain=1 {arguments} code={code:#x}\n"
        )
    };
    const NONE: &str = "peer=-4 tag=-4";
    text += &format!("0 1 thread_info os_tid={} name=app\n0 1 thread_begin type=initial\n", 100 + chosen);
    text += "0 1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1\n";
    text += &call("begin", 0, (14, 250), NONE);
    let facts = format!("{size},{chosen},0,{}", members.join(","));
    text += &format!("5 1 object_defined domain=1 kind=1 handle=0x10 facts={facts}\n");
    text += "7 1 object_defined domain=1 kind=5 handle=0x20 facts=8\n";
    text += &call("end", 9, (14, 250), NONE);
    let mut ranks: Vec<Rank> =
        (0..size).map(|rank| Rank { now: 9, random: Random::new(rank as u64) }).collect();
    let (before, after) = ((chosen + size - 1) % size, (chosen + 1) % size);
    let mut sent = vec![0; size];
    for step in 1..=steps {
        let mut posted = vec![0; size];
        for (number, rank) in ranks.iter_mut().enumerate() {
            posted[number] = rank.now + 1000 + rank.random.below(500);
            sent[number] = posted[number] + 100;
        }
        for (number, rank) in ranks.iter_mut().enumerate() {
            let begin = sent[number] + 300;
            rank.now = begin.max(sent[(number + size - 1) % size]) + 50;
            if number == chosen {
                let peer = |peer: usize| format!("object=0x10 peer={peer} tag=1 count=1 datatype=0x20");
                text += &call("begin", posted[number], (5, 257), &peer(before));
                text += &call("end", posted[number] + 90, (5, 257), &format!("object=0xa0 {NONE}"));
                text += &call("begin", sent[number], (1, 346), &peer(after));
                text += &call("end", sent[number] + 290, (1, 346), NONE);
                text += &call("begin", begin, (7, 434), NONE);
                text += &format!("{begin} 1 call_objects role=1 numbers=0xa0\n");
                text += &format!("{} 1 call_objects role=2 numbers=0xa0,{before},1,8\n", rank.now);
                text += &call("end", rank.now, (7, 434), NONE);
            }
        }
        if step % STEPS == 0 {
            let begins: Vec<u64> = ranks.iter().map(|rank| rank.now + 10).collect();
            let end = begins.iter().max().expect("a rank") + 200;
            ranks.iter_mut().for_each(|rank| rank.now = end);
            let arguments = "object=0x10 peer=-4 tag=-4 count=1 datatype=0x20";
            text += &call("begin", begins[chosen], (10, 19), arguments);
            text += &call("end", end, (10, 19), NONE);
        }
    }
    let end = ranks[chosen].now + 5;
    text + &format!("{end} 1 implicit_task end task=1 flags=1\n{end} 1 thread_end\n")
}
