//! Checks whether an archive from any writer conforms to OTF2 and to the expectations of tools. Reference tools check
//! little: not the order of times, nesting, counts, or most references.

mod definitions;
mod events;
mod faults;
mod reader;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::Path;

use omptrace_trace_format::Severity;

use crate::encoding::Kind;
use crate::records::MarkerRecord;
use definitions::Definitions;
use events::Checker;
use faults::{Fault, Faults};
use omptrace_trace_format::Finding;
use reader::{Anchor, Records};

/// Reads the archive with this anchor, and lists its problems, the most severe first. Checks files, chunks, counts,
/// references, times, nesting in each task, teams, tasks, locks and transfers. The archive is sound unless the list
/// contains a warning or an error.
pub fn check_archive(anchor: &Path) -> Vec<Finding> {
    let stated = match Anchor::read(anchor) {
        Ok(stated) => stated,
        Err(damage) => {
            return vec![Finding { severity: Severity::Error, name: "anchor", text: damage.0 }];
        }
    };
    let mut faults = Faults::default();
    let definitions = Definitions::read(&anchor.with_extension("def"), &stated, &mut faults);
    let folder = anchor.with_extension("");
    Checker::open(&folder, &stated, &definitions, &mut faults).run();
    let markers = anchor.with_extension("marker");
    check_markers(&markers, &stated, &definitions, &mut faults);
    faults.findings()
}

/// Checks the markers, which are optional. Each must have a defined kind and scope.
fn check_markers(path: &Path, anchor: &Anchor, definitions: &Definitions, faults: &mut Faults) {
    let Ok(mut records) = Records::open(path, anchor.definition_chunk_bytes, false) else {
        return;
    };
    let mut kinds = HashSet::new();
    loop {
        match records.next(MarkerRecord::take) {
            Ok(None) => return,
            Ok(Some(MarkerRecord::DefMarker(kind))) => {
                kinds.insert(kind.id);
            }
            Ok(Some(MarkerRecord::Marker(marker)))
                if !kinds.contains(&marker.marker)
                    || scope_kind(marker.scope)
                        .is_some_and(|kind| !definitions.defines(kind, marker.scope_reference)) =>
            {
                faults.add(Fault::Undefined, || format!("marker at {}", marker.time));
            }
            Ok(Some(_)) => {}
            Err(damage) => return faults.add(Fault::Damaged, || damage.0),
        }
    }
}

/// The kind of definition to which a marker's scope refers (`OTF2_MarkerScope`).
fn scope_kind(scope: u8) -> Option<Kind> {
    Some(match scope {
        1 => Kind::Location,
        2 => Kind::LocationGroup,
        3 => Kind::SystemTreeNode,
        4 => Kind::Group,
        5 => Kind::Comm,
        _ => return None,
    })
}
