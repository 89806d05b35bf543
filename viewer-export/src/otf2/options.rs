//! The options and files of archives.

use otf2_archive::records::{paradigm, role};

use crate::format::options::{FolderParts, FormatOption, FormatOptions, ON};

/// The options of `convert` for archives.
pub(crate) const OPTIONS: &[FormatOption] = &[ENUMS, HOST_ONLY];

const ENUMS: FormatOption = FormatOption {
    name: "otf2-enums",
    value_name: "VERSION",
    values: &[("3.0", "OTF2 3.0 (as in Debian 12) or older"), ("3.1", "OTF2 3.1 or newer")],
    default: "3.1",
    help: "the oldest version of OTF2 that must be able to read the archive. With a version before 3.1, target regions are stored with the same paradigm as other OpenMP regions",
};

const HOST_ONLY: FormatOption = FormatOption {
    name: "host-only",
    value_name: "",
    values: &[],
    default: "",
    help: "write only host threads and no devices, as Scalasca requires",
};

/// The files of an archive.
pub(crate) const PARTS: FolderParts = FolderParts {
    anchor: "traces.otf2",
    files: &["traces.def", "traces.marker"],
    folders: &[("traces", &["def", "evt"])],
};

/// How OTF2 archives are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Otf2Options {
    /// The version whose enumerators are used.
    pub enums: Enums,
    /// Leaves out the operations of devices, because Scalasca accepts only CPU threads as locations.
    pub host_only: bool,
}

/// The OTF2 version whose enumerators are used. Readers of older versions do not know newer enumerators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Enums {
    /// 3.0 and older.
    V3_0,
    /// 3.1 and newer, with enumerators for target regions, kernels and cancellation.
    #[default]
    V3_1,
}

impl Enums {
    pub(super) fn target_paradigm(self) -> u8 {
        match self {
            Enums::V3_0 => paradigm::OPENMP,
            Enums::V3_1 => paradigm::OPENMP_TARGET,
        }
    }

    pub(super) fn kernel_role(self) -> u8 {
        match self {
            Enums::V3_0 => role::FUNCTION,
            Enums::V3_1 => role::KERNEL,
        }
    }

    pub(super) fn cancel_role(self) -> u8 {
        match self {
            Enums::V3_0 => role::CODE,
            Enums::V3_1 => role::CANCEL,
        }
    }
}

impl Otf2Options {
    /// The archive's options among all given ones.
    pub(crate) fn of(options: &FormatOptions) -> Otf2Options {
        Otf2Options {
            enums: match options.get(&ENUMS) {
                "3.0" => Enums::V3_0,
                _ => Enums::V3_1,
            },
            host_only: options.get(&HOST_ONLY) == ON,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_by_name() {
        let mut options = FormatOptions::default();
        assert_eq!(Otf2Options::of(&options), Otf2Options::default());
        options.set(&ENUMS, "3.0");
        options.switch_on(&HOST_ONLY);
        let expected = Otf2Options { enums: Enums::V3_0, host_only: true };
        assert_eq!(Otf2Options::of(&options), expected);
    }
}
