//! Whether an archive, of ours or of anybody, is as OTF2 and the tools that read it want it. Reference tools look at
//! little: order of times, nesting, counts and most references are not checked there.

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

/// Reads a whole archive, by its anchor, and lists what is not as it should be, the worst first. It checks files,
/// chunks, counts, references, times, nesting of each task, teams, tasks, locks and transfers. The archive is sound
/// unless a warning or an error is among them.
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

/// An archive need not have markers; each is of a kind that was defined, and belongs to something that is.
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

/// The kind of thing that a marker's scope refers to (`OTF2_MarkerScope`).
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
