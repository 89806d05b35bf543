//! Findings as editors and code hosts read problems: as lines `file:line: warning: TEXT`, and as SARIF 2.1.0.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use clap::ValueEnum;
use omptrace_analysis::answers::{Finding, Rule};
use omptrace_analysis::printable;
use omptrace_report::{percent, time};
use omptrace_symbols::normalised;
use serde_json::{Value, json};

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProblemFormat {
    /// SARIF 2.1.0, the format that code hosts and editors read
    Sarif,
    /// Lines of the form `file:line: warning: TEXT [RULE]`, as compilers print them
    Lines,
}

/// The findings of a run that took `duration_ns`, as text.
pub(crate) fn text(format: ProblemFormat, findings: &[Finding], duration_ns: u64) -> String {
    match format {
        ProblemFormat::Sarif => format!("{:#}\n", sarif(findings, duration_ns)),
        ProblemFormat::Lines => findings.iter().fold(String::new(), |mut lines, finding| {
            let mut text = String::new();
            if let Some(file) = &finding.place.file {
                let _ = write!(text, "{file}:{}: ", line(finding));
            }
            let message = message(finding, duration_ns);
            let _ = write!(text, "warning: {message} [{}]", finding.id);
            let _ = writeln!(lines, "{}", printable(&text));
            lines
        }),
    }
}

/// What it is, and what it costs.
fn message(finding: &Finding, duration_ns: u64) -> String {
    let share = finding.gain_ns as f64 / duration_ns.max(1) as f64;
    format!(
        "{}; fixing this problem saves up to {} ({} %)",
        finding.text,
        time(finding.gain_ns),
        percent(share)
    )
}

/// Code hosts refuse a whole file in which a result has no location. A finding whose file is not known is a notification instead: they
/// show none, and other readers show all.
fn sarif(findings: &[Finding], duration_ns: u64) -> Value {
    let ids: BTreeSet<&str> = findings.iter().map(|finding| &*finding.id).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    let rules: Vec<Value> = ids.iter().map(|id| rule(id)).collect();
    let index = |finding: &Finding| ids.binary_search(&&*finding.id).unwrap_or_default();
    let (mut results, mut notifications) = (Vec::new(), Vec::new());
    for finding in findings {
        let message = json!({ "text": message(finding, duration_ns) });
        let properties = json!({
            "gain_ns": finding.gain_ns,
            "evidence": finding.evidence,
            "position": finding.place.position,
        });
        match location(finding) {
            Some(location) => results.push(json!({
                "ruleId": finding.id,
                "ruleIndex": index(finding),
                "level": "warning",
                "message": message,
                "locations": [location],
                "properties": properties,
            })),
            None => notifications.push(json!({
                "associatedRule": { "id": finding.id, "index": index(finding) },
                "level": "warning",
                "message": message,
                "properties": properties,
            })),
        }
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "omptrace",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            } },
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications,
            }],
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}

/// A rule, with what code hosts show of it.
fn rule(id: &str) -> Value {
    let rule = Rule::by_id(id);
    let title = rule.map_or_else(|| capitalised(&id.replace('_', " ")), |rule| rule.title.to_owned());
    let page = Finding::page_address(id);
    let condition = capitalised(rule.map_or("", |rule| rule.when)) + ".";
    let help = "The message of each result suggests a change to the program and estimates how much wall time the change saves.";
    json!({
        "id": id,
        "shortDescription": { "text": format!("{title}.") },
        "fullDescription": { "text": condition },
        "help": {
            "text": format!("{condition} {help} See {page}."),
            "markdown": format!("{condition} {help} See [what this finding means]({page})."),
        },
        "helpUri": page,
        "defaultConfiguration": { "level": "warning" },
        "properties": { "tags": ["performance", "openmp"] },
    })
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Where a finding is; `None` where its file is not known.
fn location(finding: &Finding) -> Option<Value> {
    let file = finding.place.file.as_deref()?;
    Some(json!({ "physicalLocation": {
        "artifactLocation": { "uri": uri(file) },
        "region": { "startLine": line(finding) },
    } }))
}

/// The line to show; the first where none is known, since code hosts require one.
fn line(finding: &Finding) -> u32 {
    finding.place.line.unwrap_or(1).max(1)
}

/// The file's address, without dot segments, which code hosts do not resolve. Below the current folder it is relative, so that it holds
/// in every checkout.
fn uri(file: &str) -> String {
    let folder = std::env::current_dir().unwrap_or_default();
    uri_from(&folder, file)
}

fn uri_from(folder: &Path, file: &str) -> String {
    let mut path = normalised(file);
    if path.starts_with("../") {
        path = normalised(&folder.join(path).to_string_lossy());
    }
    let path = Path::new(&path);
    let relative = path.strip_prefix(folder).unwrap_or(path);
    let encoded = encoded(&relative.to_string_lossy());
    match relative.is_absolute() {
        true => format!("file://{encoded}"),
        false => encoded,
    }
}

/// With what an address cannot have as percent signs and numbers (RFC 3986).
fn encoded(path: &str) -> String {
    path.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => encoded.push(char::from(byte)),
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use omptrace_analysis::answers::Place;

    use super::*;

    fn finding(file: Option<&str>) -> Finding {
        Finding {
            id: "load_imbalance".to_owned(),
            place: Place::at("!$omp for", file, file.map(|_| 35), None),
            gain_ns: 121_000_000,
            text: "threads wait".to_owned(),
            evidence: serde_json::Map::new(),
            instances: Vec::new(),
        }
    }

    #[test]
    fn lines_are_those_of_compilers() {
        let findings = [finding(Some("/src/a b.c")), finding(None)];
        assert_eq!(
            text(ProblemFormat::Lines, &findings, 1_000_000_000),
            "/src/a b.c:35: warning: threads wait; fixing this problem saves up to 121 ms (12.1 %) [load_imbalance]\n\
             warning: threads wait; fixing this problem saves up to 121 ms (12.1 %) [load_imbalance]\n"
        );
    }

    fn run_of(findings: &[Finding]) -> Value {
        let text = text(ProblemFormat::Sarif, findings, 1_000_000_000);
        let mut sarif: Value = serde_json::from_str(&text).unwrap();
        sarif["runs"][0].take()
    }

    /// Code hosts refuse the whole file for one result without a place.
    #[test]
    fn results_have_places_and_what_has_none_is_a_notification() {
        let run = run_of(&[finding(Some("/src/a b.c")), finding(None)]);
        assert_eq!(run["results"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            run["results"][0]["locations"],
            json!([{ "physicalLocation": {
                "artifactLocation": { "uri": "file:///src/a%20b.c" },
                "region": { "startLine": 35 },
            } }])
        );
        let notifications = &run["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(
            (
                notifications.as_array().map(Vec::len),
                &notifications[0]["associatedRule"],
                &notifications[0]["message"]
            ),
            (Some(1), &json!({ "id": "load_imbalance", "index": 0 }), &run["results"][0]["message"])
        );
        let mut whole_file = finding(Some("a.c"));
        whole_file.place.line = None;
        let place = &run_of(&[whole_file])["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["region"], json!({ "startLine": 1 }));
    }

    #[test]
    fn rules_have_descriptions() {
        for Rule { id, .. } in omptrace_analysis::answers::RULES {
            let rule = rule(id);
            for field in ["shortDescription", "fullDescription", "help"] {
                let text = rule[field]["text"].as_str().unwrap();
                assert!(text.len() > 8 && text.contains('.'), "{id}: {field}: {text}");
            }
            assert!(rule["helpUri"].as_str().unwrap().starts_with("https://"));
        }
        let rules = &run_of(&[finding(None)])["tool"]["driver"]["rules"];
        assert_eq!(rules[0]["id"], "load_imbalance");
        assert_eq!(rules[0]["shortDescription"]["text"], "Load imbalance.");
    }

    #[test]
    fn addresses_have_no_dot_segments() {
        for (file, uri) in [
            ("/src/build/../app/a.c", "app/a.c"),
            ("/src/./a.c", "a.c"),
            ("../lib/a.c", "file:///lib/a.c"),
            ("../src/a.c", "a.c"),
            ("x/../a.c", "a.c"),
            ("/other/../a.c", "file:///a.c"),
        ] {
            assert_eq!(uri_from(Path::new("/src"), file), uri, "{file}");
        }
    }
}
