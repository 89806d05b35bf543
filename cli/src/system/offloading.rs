//! The capabilities of this machine's devices, from the kernel's lists and the offloading libraries. No library is
//! loaded, and no device is accessed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::system::elf;
use crate::system::folders::files_in;
use crate::system::installed_runtimes;
use crate::system::library_search::Loader;

/// Devices, and libraries for offloading.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Offloading {
    /// GPUs that drivers list.
    devices: Vec<Listed>,
    /// Offloading libraries and their plug-ins.
    libraries: Vec<Library>,
    /// NVIDIA's libraries for device tracing.
    cupti: Vec<PathBuf>,
}

/// A device that a driver lists.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Listed {
    name: String,
    maker: Maker,
    /// Which records of the device a trace would contain, and why no others.
    records: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Maker {
    #[serde(rename = "NVIDIA")]
    Nvidia,
    #[serde(rename = "AMD")]
    Amd,
}

/// A library for offloading.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Library {
    path: PathBuf,
    /// Whether it contains the name of the entry point for device tracing.
    can_trace: bool,
}

/// Text for devices that are not recorded.
const OBSERVED: &str = "no device records; operations are shown with the timestamps that the host observed";
const BY_RUNTIME: &str = "device records from an offloading library that supports them";
const CUPTI: &str = "NVIDIA's CUPTI: provides records of NVIDIA devices if the OpenMP runtime provides none";
/// The directories in which NVIDIA's installer places CUPTI, in addition to the loader's.
const CUDA_FOLDERS: [&str; 2] = ["/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"];
const ASKED: &str =
    "can provide device records, but may refuse to do so when a program offloads, as Intel's library does";

/// Facts that are the same for all NVIDIA devices.
#[derive(Debug)]
struct Nvidia<'r> {
    root: &'r Path,
    cupti: &'r [PathBuf],
}

impl Offloading {
    /// The capabilities of this machine.
    pub(crate) fn find(loader: &Loader) -> Offloading {
        let paths = installed_runtimes::libraries(loader, |name| {
            name.starts_with("libomptarget") && name.contains(".so")
        });
        let library = |path: PathBuf| Library {
            // A runtime finds entry points by name.
            can_trace: elf::contains(&path, b"ompt_start_trace"),
            path,
        };
        let is_cupti = |name: &str| name.starts_with("libcupti.so.");
        let mut cupti = loader.libraries(is_cupti);
        cupti.extend(CUDA_FOLDERS.iter().flat_map(|folder| files_in(Path::new(folder), is_cupti)));
        let libraries = paths.into_iter().map(library).collect();
        Offloading::of(libraries, cupti, Path::new("/"))
    }

    /// The capabilities of these libraries, and of the devices that the kernel of the machine at `root` lists.
    fn of(libraries: Vec<Library>, cupti: Vec<PathBuf>, root: &Path) -> Offloading {
        let nvidia = Nvidia { root, cupti: &cupti };
        let any_traces = libraries.iter().any(|library| library.can_trace);
        let nvidias = nvidias(root).into_iter().map(|name| (Maker::Nvidia, name));
        let amds = amds(root).into_iter().map(|name| (Maker::Amd, name));
        let listed = |(maker, name)| Listed {
            name,
            maker,
            records: match maker {
                Maker::Amd if any_traces => BY_RUNTIME.to_owned(),
                Maker::Amd => OBSERVED.to_owned(),
                Maker::Nvidia => nvidia.records(),
            },
        };
        Offloading { devices: nvidias.chain(amds).map(listed).collect(), libraries, cupti }
    }

    /// Lines for the output; empty if nothing was found.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for device in &self.devices {
            let maker = match device.maker {
                Maker::Nvidia => "NVIDIA",
                Maker::Amd => "AMD",
            };
            lines.push(format!("  {} ({maker})", device.name));
            lines.push(format!("      {}", device.records));
        }
        for library in &self.libraries {
            lines.push(format!("  {}", library.path.display()));
            let words = if library.can_trace { ASKED } else { OBSERVED };
            lines.push(format!("      {words}"));
        }
        for path in &self.cupti {
            lines.push(format!("  {}", path.display()));
            lines.push(format!("      {CUPTI}"));
        }
        lines
    }
}

impl Nvidia<'_> {
    /// Which records of a device a trace would contain, and why no others.
    fn records(&self) -> String {
        let driver = self.driver();
        let supported = driver.as_deref().and_then(cuda_of_driver);
        let fits = |path: &&PathBuf| {
            major_of(path).is_some_and(|major| {
                (12..=13).contains(&major) && supported.is_none_or(|supported| major <= supported)
            })
        };
        let driver = driver.map_or("of unknown version".to_owned(), |version| version);
        match (self.cupti.iter().find(fits), supported) {
            (_, Some(supported)) if supported < 12 => {
                format!("{OBSERVED}; driver {driver} is too old: CUPTI needs a driver that supports CUDA 12")
            }
            (None, _) if self.cupti.is_empty() => {
                format!(
                    "{OBSERVED}; no libcupti.so.12 or libcupti.so.13 was found (if one is installed, set OMPTRACE_CUPTI to its path)"
                )
            }
            (None, _) => {
                format!(
                    "{OBSERVED}; driver {driver} does not support the CUDA version of any libcupti that was found"
                )
            }
            (Some(path), _) => {
                let path = path.display();
                let restricted = match self.is_restricted() {
                    true => {
                        "; only root may read device records, because the driver's option RmProfilingAdminOnly is set"
                    }
                    false => "",
                };
                format!("device records from CUPTI ({path}, driver {driver}){restricted}")
            }
        }
    }

    /// The version of the driver, such as `535.104.05`.
    fn driver(&self) -> Option<String> {
        let text = fs::read_to_string(self.root.join("proc/driver/nvidia/version")).ok()?;
        let is_version = |word: &&str| {
            let mut parts = word.split('.');
            let are_numbers = word.split('.').all(|part| part.parse::<u32>().is_ok());
            parts.next().is_some_and(|first| first.len() == 3) && parts.next().is_some() && are_numbers
        };
        text.split_whitespace().find(is_version).map(str::to_owned)
    }

    /// Whether the driver allows only root to record.
    fn is_restricted(&self) -> bool {
        let text = fs::read_to_string(self.root.join("proc/driver/nvidia/params"));
        let text = text.unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix("RmProfilingAdminOnly:"));
        value.is_some_and(|value| value.trim() == "1")
    }
}

/// The newest CUDA version that a driver supports.
fn cuda_of_driver(version: &str) -> Option<u32> {
    let driver: u32 = version.split('.').next()?.parse().ok()?;
    Some(match driver {
        580.. => 13,
        525.. => 12,
        _ => 11,
    })
}

/// The major version in a library's name.
fn major_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let version = name.strip_prefix("libcupti.so.")?;
    let major = version.split('.').next()?.parse::<u32>().ok()?;
    // `libcupti.so.2024.1.0` does not contain a CUDA version.
    (major < 100).then_some(major)
}

/// The models that NVIDIA's driver lists.
fn nvidias(root: &Path) -> Vec<String> {
    let folders = files_in(&root.join("proc/driver/nvidia/gpus"), |_| true);
    let model = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("information")).ok()?;
        let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
        Some(model.trim().to_owned())
    };
    folders.into_iter().filter_map(model).collect()
}

/// The nodes of AMD's driver that are not CPUs.
fn amds(root: &Path) -> Vec<String> {
    let nodes = files_in(&root.join("sys/class/kfd/kfd/topology/nodes"), |_| true);
    let name = |node: PathBuf| {
        let properties = fs::read_to_string(node.join("properties")).ok()?;
        let simds = properties.lines().find_map(|line| line.strip_prefix("simd_count "))?;
        let is_device = simds.trim().parse::<u32>().is_ok_and(|count| count > 0);
        let name = fs::read_to_string(node.join("name")).unwrap_or_default();
        let name = match name.trim() {
            "" => "GPU",
            name => name,
        };
        is_device.then(|| name.to_owned())
    };
    nodes.into_iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        fs::write(&path, text).expect("a writable folder");
    }

    #[test]
    fn says_of_each_device_and_library_what_a_trace_has() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let root = root.path();
        let nvidias = "proc/driver/nvidia/gpus/0000:01:00.0/information";
        write(root, nvidias, "Model: \t\t H100\nIRQ: 5\n");
        let nodes = "sys/class/kfd/kfd/topology/nodes";
        write(root, &format!("{nodes}/0/properties"), "cpu_cores_count 64\nsimd_count 0\n");
        write(root, &format!("{nodes}/1/properties"), "simd_count 416\n");
        write(root, &format!("{nodes}/1/name"), "gfx90a\n");
        let library = |can_trace| Library { path: "/lib/libomptarget.so".into(), can_trace };

        let devices = ["  H100 (NVIDIA)", "  gfx90a (AMD)"];
        let found = Offloading::of(vec![library(false)], Vec::new(), root);
        let observed = format!("      {OBSERVED}");
        let no_cupti = format!(
            "{observed}; no libcupti.so.12 or libcupti.so.13 was found (if one is installed, set OMPTRACE_CUPTI to its path)"
        );
        let path = "  /lib/libomptarget.so";
        assert_eq!(found.lines(), [devices[0], &no_cupti, devices[1], &observed, path, &observed]);
        let found = Offloading::of(vec![library(true)], Vec::new(), root);
        assert_eq!(found.devices[1].records, BY_RUNTIME);
        assert_eq!(found.lines()[5], format!("      {ASKED}"));
    }

    #[test]
    fn says_of_nvidias_devices_whether_cupti_and_driver_fit() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let root = root.path();
        let driver = |version: &str| {
            let text = format!(
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Sat Sep 23 2026\nGCC version: gcc version 12.2.0\n"
            );
            write(root, "proc/driver/nvidia/version", &text);
        };
        let records = |names: &[&str]| {
            let cupti: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            let cupti = &cupti;
            Nvidia { root, cupti }.records()
        };
        driver("535.104.05");
        let both = ["/c/libcupti.so.13", "/c/libcupti.so.12"];
        assert_eq!(records(&both), "device records from CUPTI (/c/libcupti.so.12, driver 535.104.05)");
        assert!(
            records(&both[..1]).contains(
                "driver 535.104.05 does not support the CUDA version of any libcupti that was found"
            )
        );
        write(root, "proc/driver/nvidia/params", "A: 0\nRmProfilingAdminOnly: 1\n");
        assert!(records(&both).contains("only root may read device records"));
        driver("580.65.06");
        assert!(records(&both).contains("/c/libcupti.so.13"));
        driver("470.82.01");
        assert!(records(&both).contains("driver 470.82.01 is too old"));
        assert!(records(&[]).contains("is too old"));
    }

    #[test]
    fn says_nothing_of_a_machine_without_devices() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let found = Offloading::of(Vec::new(), Vec::new(), root.path());
        assert!(found.lines().is_empty());
    }
}
