//! Signals, and threads that are cancelled.

use omptrace_tests::trace::{Traces, count, dump, info};

use crate::{all_regions, number, program, run};

#[test]
fn callbacks_out_of_signal_handlers_are_recorded_or_counted() {
    for compress in ["auto", "off"] {
        let traces = Traces::folder();
        let mut command = program("reliability_signals.c", &["2", "20000"]);
        // The runtime's other locks have one place per thread to wait in: a handler would take it away.
        command.env("KMP_LOCK_KIND", "tas").env("OMPTRACE_COMPRESS", compress);
        let said = traces.record(&mut command);
        let trace = traces.only();
        let events = dump(&trace);
        let recorded: usize = ["mutex_acquire", "mutex_acquired", "mutex_released"]
            .map(|name| count(&events, name))
            .iter()
            .sum();
        let lost = info(&trace)["lost"].as_u64().expect("a number") as usize;
        assert_eq!(recorded + lost, number(&said, "mutexes"), "{lost} lost");
        // Only what comes within another event is lost: three of a handler.
        let handled = number(&said, "handled");
        assert!(handled > 0 && lost <= 3 * handled, "{lost} of {handled}");
    }
}

#[test]
fn a_thread_is_cancelled_where_the_program_says_and_not_in_the_tracer() {
    for compress in ["auto", "off"] {
        let traces = Traces::folder();
        let mut command = program("reliability_cancelled_threads.c", &[]);
        let output = run(&traces, command.env("OMPTRACE_COMPRESS", compress));
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let done = number(&String::from_utf8_lossy(&output.stdout), "regions");
        traces.only();
        assert_eq!(all_regions(&traces), [[done, done, 0]]);
    }
}
