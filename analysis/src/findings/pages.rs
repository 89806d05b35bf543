//! The page of each rule, as `docs/findings` has it.

/// Turns names into the table of pages: `load_imbalance` is `docs/findings/load_imbalance.md`.
macro_rules! pages {
    ($($name:ident),* $(,)?) => {
        const PAGES: &[(&str, &str)] =
            &[$((stringify!($name), include_str!(concat!("../../../docs/findings/", stringify!($name), ".md")))),*];
    };
}

pages! {
    load_imbalance,
    single_serialises,
    region_in_single,
    single_creator,
    serial_part,
    serial_function,
    user_spinning,
    memory_bound,
    narrow_team,
    false_num_threads,
    nested_oversubscription,
    critical_contention,
    critical_for_atomic,
    lock_contention,
    atomic_contention,
    several_mutexes,
    ordered_serialises,
    too_few_tasks,
    taskwait_chain,
    dependence_chain,
    tasks_too_fine,
    region_too_small,
    needless_barrier,
    chunk_too_small,
    late_wake_up,
    oversubscription,
    rank_imbalance,
    late_sender,
    idle_during_mpi,
    serialised_exchange,
    no_overlap,
    small_messages,
    unsuccessful_tests,
    mpi_in_critical,
    oversubscribed_host,
    target_wait,
    small_kernels,
    small_transfers,
    transfers_not_overlapped,
    reduction_cost,
    external_wait,
    preempted,
    tracer_disturbs,
}

/// The page of the rule with this id; empty where it has none, which a test forbids.
pub(super) fn of(id: &str) -> &'static str {
    PAGES.iter().find(|(name, _)| *name == id).map_or("", |(_, page)| page)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::PAGES;
    use crate::findings::RULES;

    #[test]
    fn each_rule_has_its_page_and_each_page_its_rule() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/findings");
        let files: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "README.md")
            .collect();
        let expected: BTreeSet<String> = RULES.iter().map(|rule| format!("{}.md", rule.id)).collect();
        assert_eq!(files, expected);
        assert_eq!(PAGES.len(), RULES.len());
        let list = include_str!("../../../docs/findings/README.md");
        for rule in RULES {
            let page = rule.page();
            assert!(page.starts_with(&format!("# {}\n", rule.title)), "{}: its title", rule.id);
            for part in ["## What it means", "## Before", "## After", "## When it is wrong"] {
                assert!(page.contains(&format!("\n{part}\n")), "{}: {part}", rule.id);
            }
            assert!(page.contains(&format!("`{}`", rule.id)), "{}: its id", rule.id);
            assert!(list.contains(&format!("({}.md)", rule.id)), "{} is not in the list", rule.id);
        }
    }
}
