//! Findings as editors and code hosts read problems: as lines `file:line: warning: TEXT`, and as SARIF 2.1.0.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use clap::ValueEnum;
use omptrace_analysis::answers::Finding;
use omptrace_analysis::{percent, printable, time};
use serde_json::{Value, json};

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProblemFormat {
    /// SARIF 2.1.0, which code hosts and editors read
    Sarif,
    /// `file:line: warning: TEXT [RULE]`, as compilers print it
    Lines,
}

/// The findings of a run that took `duration_ns`, as text.
pub(crate) fn text(format: ProblemFormat, findings: &[Finding], duration_ns: u64) -> String {
    match format {
        ProblemFormat::Sarif => format!("{:#}\n", sarif(findings, duration_ns)),
        ProblemFormat::Lines => findings.iter().fold(String::new(), |mut lines, finding| {
            let mut text = String::new();
            if let Some(file) = &finding.place.file {
                let line = finding.place.line.unwrap_or(1);
                let _ = write!(text, "{file}:{line}: ");
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
        "{}; {} ({} %) to gain",
        finding.text,
        time(finding.gain_ns),
        percent(share)
    )
}

fn sarif(findings: &[Finding], duration_ns: u64) -> Value {
    let rules: BTreeSet<&str> = findings.iter().map(|finding| &*finding.id).collect();
    let rules: Vec<Value> = rules.iter().map(|id| json!({ "id": id })).collect();
    let results: Vec<Value> = findings
        .iter()
        .map(|finding| result(finding, duration_ns))
        .collect();
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
            "results": results,
        }],
    })
}

fn result(finding: &Finding, duration_ns: u64) -> Value {
    let mut result = json!({
        "ruleId": finding.id,
        "level": "warning",
        "message": { "text": message(finding, duration_ns) },
        "properties": { "gain_ns": finding.gain_ns, "evidence": finding.evidence },
    });
    if let Some(file) = &finding.place.file {
        let mut place = json!({ "artifactLocation": { "uri": uri(file) } });
        if let Some(line) = finding.place.line.filter(|line| *line > 0) {
            place["region"] = json!({ "startLine": line });
        }
        result["locations"] = json!([{ "physicalLocation": place }]);
    }
    result
}

/// The file's address: below the current folder it is relative, so that it holds in every checkout.
fn uri(file: &str) -> String {
    let folder = std::env::current_dir().unwrap_or_default();
    let path = Path::new(file);
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
            place: Place {
                construct: "!$omp for".to_owned(),
                file: file.map(str::to_owned),
                line: file.map(|_| 35),
                function: None,
            },
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
            "/src/a b.c:35: warning: threads wait; 121 ms (12.1 %) to gain [load_imbalance]\n\
             warning: threads wait; 121 ms (12.1 %) to gain [load_imbalance]\n"
        );
    }

    #[test]
    fn sarif_has_places_and_rules() {
        let findings = [finding(Some("/src/a b.c")), finding(None)];
        let text = text(ProblemFormat::Sarif, &findings, 1_000_000_000);
        let sarif: Value = serde_json::from_str(&text).unwrap();
        let run = &sarif["runs"][0];
        assert_eq!(
            run["tool"]["driver"]["rules"],
            json!([{ "id": "load_imbalance" }])
        );
        assert_eq!(
            run["results"][0]["locations"],
            json!([{ "physicalLocation": {
                "artifactLocation": { "uri": "file:///src/a%20b.c" },
                "region": { "startLine": 35 },
            } }])
        );
        assert_eq!(run["results"][1].get("locations"), None);
    }
}
