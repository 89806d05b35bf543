//! Names of kernels: functions in the images that were loaded onto devices.
//!
//! LLVM calls a kernel `__omp_offloading_DEVICE_FILE_FUNCTION_lLINE`. The line is that of the target construct.

use std::collections::{BTreeMap, BTreeSet};

use object::{Object, ObjectSymbol};
use omptrace_trace_format::event::{DeviceImage, DeviceLoad};

use omptrace_symbols::kernel;

/// Largest total size of images that are being assembled.
const MAX_BYTES: u64 = 64 << 20;

/// The functions with target constructs, by line.
#[derive(Debug, Default)]
pub(crate) struct Images {
    functions: BTreeMap<u32, BTreeSet<String>>,
    /// Incomplete images, by device and module, each with its length and the bytes so far.
    parts: BTreeMap<(i32, u64), (u64, Vec<u8>)>,
}

impl Images {
    /// An image was loaded; its parts may follow.
    pub(crate) fn load(&mut self, e: &DeviceLoad<'_>) {
        let waiting: u64 = self.parts.values().map(|(len, _)| *len).sum();
        if e.bytes <= MAX_BYTES.saturating_sub(waiting) {
            self.parts.insert((e.device_num, e.module_id), (e.bytes, Vec::new()));
        }
    }

    /// Adds a part of an image. After the last part, reads the image's functions.
    pub(crate) fn part(&mut self, e: &DeviceImage<'_>) {
        let key = (e.device_num, e.module_id);
        let Some((len, bytes)) = self.parts.get_mut(&key) else {
            return;
        };
        if e.offset != bytes.len() as u64 || e.offset + e.bytes.0.len() as u64 > *len {
            self.parts.remove(&key);
            return;
        }
        bytes.extend_from_slice(&e.bytes.0);
        if bytes.len() as u64 == *len {
            let (_, image) = self.parts.remove(&key).unwrap_or_default();
            self.read(&image);
        }
    }

    fn read(&mut self, image: &[u8]) {
        let Ok(file) = object::File::parse(image) else {
            return;
        };
        let symbols = file.symbols().chain(file.dynamic_symbols());
        for (function, line) in symbols.filter_map(|symbol| kernel(symbol.name().ok()?)) {
            self.functions.entry(line).or_default().insert(function);
        }
    }

    /// Whether `function` contains target constructs.
    pub(crate) fn has(&self, function: &str) -> bool {
        let mut functions = self.functions.values();
        functions.any(|in_line| in_line.contains(function))
    }

    /// The function with the target construct in `line`, if there is exactly one.
    pub(crate) fn function(&self, line: u32) -> Option<&str> {
        let functions = self.functions.get(&line)?;
        functions.first().filter(|_| functions.len() == 1).map(String::as_str)
    }
}
