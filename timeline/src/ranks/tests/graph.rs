//! What each call of a job needs of other ranks.

use super::*;
use crate::ranks::graph::{CallId, JobGraph, Need, Needed};

/// The graph of a job of this many ranks, whose calls are `make`'s after the first: `MPI_Init`.
fn graph(size: u32, make: impl Fn(&mut [Rank])) -> JobGraph {
    let mut ranks: Vec<Rank> = (0..size).map(|rank| Rank::new(rank, size)).collect();
    make(&mut ranks);
    let processes = ranks.into_iter().map(Rank::finalize).collect();
    matched(processes, Wanted::Graph).graph.expect("a graph")
}

fn call(rank: u32, call: u32) -> CallId {
    CallId { rank, call }
}

/// What the calls of a rank need, except for `MPI_Finalize`, which is the last one.
fn needs(graph: &JobGraph, rank: usize) -> Vec<(u32, Needed)> {
    let of = &graph.ranks[rank];
    let all = of.needs(0).map(|Need { call, of }| (call, of));
    all.filter(|(call, _)| *call as usize + 1 < of.len()).collect()
}

#[test]
fn a_receive_needs_the_send_and_a_send_that_waited_needs_the_receive() {
    let graph = graph(2, |ranks| {
        // The send has returned before the message is received.
        ranks[0].send((100, 110), 1, 0, 1);
        ranks[1].receive((150, 160), (0, 0), Some((0, 0, 8)));
        // It has waited.
        ranks[0].send((200, 450), 1, 0, 1);
        ranks[1].receive((400, 440), (0, 0), Some((0, 0, 8)));
        // It would wait, but the receive was there.
        ranks[1].receive((500, 620), (0, 0), Some((0, 0, 8)));
        ranks[0].call((600, 610), "MPI_Ssend", (WORLD, 1, 0, 1), 0, None);
    });
    assert_eq!(needs(&graph, 0), [(2, Needed::Receiver(call(1, 2))), (3, Needed::Receiver(call(1, 3)))]);
    let sent = |number| Needed::Sender(call(0, number));
    assert_eq!(needs(&graph, 1), [(1, sent(1)), (2, sent(2)), (3, sent(3))]);
    // And all of `MPI_Finalize`.
    assert_eq!((graph.ranks[0].needed(), graph.ranks[1].needed()), (&[1, 2, 3, 4][..], &[2, 3, 4][..]));
    assert_eq!(graph.unknown, [""; 0]);
    let mut block = Default::default();
    let third = graph.ranks[0].call(2, &mut block).expect("a call");
    assert_eq!((third.begin, third.end, third.communicates), (200, 450, true));
    assert!(!graph.ranks[0].call(0, &mut block).expect("MPI_Init").communicates);
    assert_eq!((graph.ranks[0].len(), graph.ranks[0].call(5, &mut block)), (5, None));
}

#[test]
fn a_wait_for_a_request_needs_what_the_request_stands_for() {
    let graph = graph(2, |ranks| {
        ranks[0].call((10, 11), "MPI_Irecv", (WORLD, 1, 1, 1), 0xa0, None);
        ranks[0].call((12, 13), "MPI_Irecv", (WORLD, 1, 2, 1), 0xb0, None);
        ranks[0].wait_all((20, 90), &[(0xa0, 1, 1, 8), (0xb0, 1, 2, 8)]);
        ranks[1].send((50, 51), 0, 1, 1);
        ranks[1].send((60, 61), 0, 2, 1);
    });
    assert_eq!(needs(&graph, 0), [(3, Needed::Sender(call(1, 1))), (3, Needed::Sender(call(1, 2)))]);
    assert_eq!(needs(&graph, 1), []);
}

#[test]
fn operations_need_whom_they_need() {
    let graph_of = |name: &'static str, root: i32| {
        graph(3, |ranks| {
            for (rank, when) in [100, 300, 200].into_iter().enumerate() {
                ranks[rank].call((when, 400), name, (WORLD, root, NONE, 1), 0, None);
            }
        })
    };
    let all = graph_of("MPI_Barrier", NONE);
    assert!(all.gates[0].is_of_all);
    assert_eq!(all.gates[0].calls, [call(0, 1), call(1, 1), call(2, 1)]);
    (0..3).for_each(|rank| assert_eq!(needs(&all, rank), [(1, Needed::Gate(0))]));
    let from_root = graph_of("MPI_Bcast", 2);
    let root = Needed::Member(call(2, 1));
    assert_eq!([0, 1, 2].map(|rank| needs(&from_root, rank)), [vec![(1, root)], vec![(1, root)], vec![]]);
    let to_root = graph_of("MPI_Reduce", 0);
    assert_eq!([0, 1, 2].map(|rank| needs(&to_root, rank)), [vec![(1, Needed::Gate(0))], vec![], vec![]]);
    assert!(!to_root.gates[0].is_of_all);
    let scan = graph_of("MPI_Scan", NONE);
    let lower = |rank| (1, Needed::Member(call(rank, 1)));
    assert_eq!([0, 1, 2].map(|rank| needs(&scan, rank)), [vec![], vec![lower(0)], vec![lower(0), lower(1)]]);
    assert_eq!([0, 1, 2].map(|rank| needs(&graph_of("MPI_Neighbor_allgather", NONE), rank)), [[]; 3]);
}

/// Nobody needs a rank that began its part after the others had returned.
#[test]
fn a_call_that_was_over_before_needs_nothing() {
    let graph = graph(2, |ranks| {
        ranks[0].call((100, 120), "MPI_Barrier", (WORLD, NONE, NONE, 0), 0, None);
        ranks[1].call((150, 160), "MPI_Barrier", (WORLD, NONE, NONE, 0), 0, None);
    });
    assert!(!graph.gates[0].is_of_all);
    assert_eq!((needs(&graph, 0), needs(&graph, 1)), (vec![], vec![(1, Needed::Gate(0))]));
}

#[test]
fn a_call_that_was_left_by_a_jump_ends_where_the_next_one_begins() {
    let graph = graph(2, |ranks| {
        ranks[0].begin(100, "MPI_Recv", (WORLD, 1, 7, 1));
        ranks[0].send((300, 310), 1, 0, 1);
        ranks[1].receive((200, 320), (0, 0), Some((0, 0, 8)));
    });
    let mut block = Default::default();
    let left = graph.ranks[0].call(1, &mut block).expect("a call");
    assert_eq!((left.begin, left.end), (100, 300));
    assert_eq!(needs(&graph, 1), [(1, Needed::Sender(call(0, 2)))]);
}

#[test]
fn a_graph_tells_why_a_job_may_go_on_differently() {
    let graph = graph(2, |ranks| {
        ranks[0].receive((100, 120), (ANY, 7), Some((1, 7, 8)));
        ranks[1].thread = 1;
        ranks[1].send((90, 91), 0, 7, 1);
        ranks[1].thread = 0;
    });
    let expected =
        ["rank 0 receives messages from any source (MPI_Recv)", "rank 1 calls MPI from several threads"];
    assert_eq!(graph.unknown, expected);
}
