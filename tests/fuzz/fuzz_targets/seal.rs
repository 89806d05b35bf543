//! Any trace can be sealed: no event that could be read before is missing afterwards.
#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use omptrace_trace_format::spool::default_path;
use omptrace_trace_format::{Ending, InDoubt, Reader, Record, SealError, seal};
use serde_json::json;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir_in(omptrace_fuzz::memory()).expect("a temporary folder");
    let path = folder.path().join("fuzz.omptrace");
    let spool_path = default_path(&path);
    let (file, spool) = omptrace_fuzz::trace(data, spool_path.as_os_str().as_encoded_bytes());
    fs::write(&path, file).expect("the folder is ours");
    if !spool.is_empty() {
        fs::write(&spool_path, spool).expect("the folder is ours");
    }
    let Some(before) = events(&path) else {
        return;
    };
    let sealed = match seal(&path, json!({}), InDoubt::Refuse, &mut |_, _| ()) {
        Ok(sealed) => sealed,
        // Sealing would lose what a newer version can read: the trace is as it was.
        Err(SealError::Unreadable(_)) => {
            assert_eq!(events(&path).as_ref(), Some(&before));
            return;
        }
        Err(error) => panic!("what can be opened can be sealed: {error}"),
    };
    let after = events(&path).expect("a sealed trace can be opened");
    assert_eq!(before, after);
    assert!(sealed.events >= after.len() as u64);
});

/// All events of the trace; `None` where it is none, or its process runs.
fn events(path: &Path) -> Option<Vec<Record>> {
    let reader = Reader::open(path).ok()?;
    if matches!(reader.ending(), Ending::Running | Ending::Unknown(_)) {
        return None;
    }
    let events = |stream| reader.events(stream);
    Some(reader.streams().iter().flat_map(events).collect())
}
