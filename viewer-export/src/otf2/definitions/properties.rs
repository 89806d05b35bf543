//! Facts about the traces as properties: of the archive, and of each process's location group.

use std::collections::BTreeMap;

use omptrace_timeline::model::Summary;

/// The value of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    Number(u64),
    Text(String),
}

/// The properties of a process, by name: `OMPTRACE::LOST_EVENTS`. Unknown texts are left out, because readers refuse
/// empty ones.
pub(crate) fn of_process(summary: &Summary) -> Vec<(String, Property)> {
    let repaired = summary.repairs.iter().map(|(_, count)| count).sum();
    let fixed = [
        ("TRACER", Property::Text(summary.tracer.clone())),
        ("RUNTIME", Property::Text(summary.runtime.clone())),
        ("DIALECT", Property::Text(summary.dialect.clone())),
        ("EVENTS", Property::Number(summary.events)),
        ("LOST_EVENTS", Property::Number(summary.lost)),
        ("DAMAGES", Property::Number(summary.damages)),
        ("REPAIRS", Property::Number(repaired)),
    ];
    let fixed = fixed.map(|(name, value)| (format!("OMPTRACE::{name}"), value));
    let causes = summary.repairs.iter().map(|(cause, count)| {
        let name = format!("OMPTRACE::REPAIRS::{}", cause.to_uppercase());
        (name, Property::Number(*count))
    });
    let is_known = |(_, value): &(String, Property)| *value != Property::Text(String::new());
    fixed.into_iter().chain(causes).filter(is_known).collect()
}

/// The properties of the archive: combined from its processes, and the version of the writer.
pub(crate) fn of_archive(processes: &[Summary]) -> Vec<(String, String)> {
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in processes.iter().flat_map(of_process) {
        match value {
            // Damaged traces may contain any number.
            Property::Number(number) => {
                let sum = numbers.entry(name).or_default();
                *sum = sum.saturating_add(number);
            }
            Property::Text(text) => {
                let texts = texts.entry(name).or_default();
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
    }
    let version = ("OMPTRACE::VERSION", env!("CARGO_PKG_VERSION"));
    let version = (version.0.to_owned(), version.1.to_owned());
    let texts = texts.into_iter().map(|(name, texts)| (name, texts.join("; ")));
    let numbers = numbers.into_iter().map(|(name, number)| (name, number.to_string()));
    [version].into_iter().chain(texts).chain(numbers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_counts_of_its_processes_together() {
        let process = |runtime: &str, lost, late_ends| Summary {
            runtime: runtime.to_owned(),
            lost,
            repairs: vec![("late_end", late_ends)],
            ..Summary::default()
        };
        let properties = of_archive(&[process("LLVM", 1, 2), process("Intel", 3, 4), process("LLVM", 0, 0)]);
        let property = |name: &str| {
            let mut named = properties.iter().filter(|property| property.0 == name);
            named.next().map(|property| &property.1[..])
        };
        assert_eq!(property("OMPTRACE::LOST_EVENTS"), Some("4"));
        assert_eq!(property("OMPTRACE::REPAIRS"), Some("6"));
        assert_eq!(property("OMPTRACE::REPAIRS::LATE_END"), Some("6"));
        assert_eq!(property("OMPTRACE::RUNTIME"), Some("LLVM; Intel"));
        assert_eq!(property("OMPTRACE::VERSION"), Some(env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn counts_of_damaged_traces_have_an_end() {
        let process = Summary { lost: u64::MAX, ..Summary::default() };
        let lost = ("OMPTRACE::LOST_EVENTS".to_owned(), u64::MAX.to_string());
        assert!(of_archive(&[process.clone(), process]).contains(&lost));
    }
}
