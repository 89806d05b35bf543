//! What was compiled into a release: a bill of materials, in CycloneDX's JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::process::{cargo, output};
use crate::result::Result;

/// The packages of the workspace that a release is made of.
const RELEASED: [&str; 7] = [
    "omptrace-tracer",
    "omptrace-cli",
    "omptrace-libgomp-adapter",
    "omptrace-waits",
    "omptrace-mpi",
    "omptrace-mpi4",
    "omptrace-mpi-large-count",
];

/// The bill of materials of a release of this version for a target.
///
/// # Errors
/// cargo cannot say what the packages need.
pub(crate) fn of_release(version: &str, target: &str) -> Result<String> {
    let metadata =
        output(&mut cargo(["metadata", "--locked", "--format-version=1", "--filter-platform", target]))?;
    let metadata: Value = serde_json::from_slice(&metadata)?;
    Ok(format!("{:#}\n", of_metadata(&metadata, version)))
}

fn of_metadata(metadata: &Value, version: &str) -> Value {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let needs: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            // What only tests need is not in a release.
            let is_linked = |dependency: &&Value| {
                list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
            };
            let dependencies = list(&node["deps"]);
            let linked = dependencies.iter().filter(is_linked);
            let linked = linked.map(|dependency| text(&dependency["pkg"]));
            (text(&node["id"]), linked.collect())
        })
        .collect();
    let mut found = BTreeSet::new();
    let mut next: Vec<String> = packages
        .iter()
        .filter(|(_, package)| RELEASED.contains(&&*text(&package["name"])))
        .map(|(id, _)| id.clone())
        .collect();
    while let Some(id) = next.pop() {
        if found.insert(id.clone()) {
            next.extend(needs.get(&id).into_iter().flatten().cloned());
        }
    }
    let components: Vec<Value> = found.iter().filter_map(|id| packages.get(id)).map(component).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": { "type": "application", "name": "omptrace", "version": version },
        },
        "components": components,
    })
}

fn component(package: &Value) -> Value {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let mut component = json!({
        "type": "library",
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
    });
    if let Some(license) = package["license"].as_str() {
        // An old spelling of `OR`.
        let license = license.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": license }]);
    }
    component
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_named_and_what_tests_need_is_not() {
        let package =
            |name: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0" });
        let dependency = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("omptrace-cli"), package("linked"), package("tested"), package("other")],
            "resolve": { "nodes": [
                { "id": "omptrace-cli", "deps": [dependency("linked", Value::Null), dependency("tested", json!("dev"))] },
                { "id": "linked", "deps": [] },
            ] },
        });
        let bill = of_metadata(&metadata, "1.0.0");
        let components = bill["components"].as_array().unwrap();
        let names: Vec<_> = components.iter().map(|found| text(&found["name"])).collect();
        assert_eq!(names, ["linked", "omptrace-cli"]);
        assert_eq!(components[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    }
}
