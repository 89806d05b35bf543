//! The options of archives, and the files of one.

use otf2_archive::records::{paradigm, role};

use crate::format::options::{FolderParts, FormatOption, FormatOptions, ON};

/// The options that `convert` has for archives.
pub(crate) const OPTIONS: &[FormatOption] = &[ENUMS, HOST_ONLY];

const ENUMS: FormatOption = FormatOption {
    name: "otf2-enums",
    value_name: "VERSION",
    values: &[("3.0", "3.0, as in Debian 12, and older"), ("3.1", "3.1 and newer")],
    default: "3.1",
    help: "the oldest version of OTF2 that must be able to read the archive. For versions before 3.1, target regions get the same paradigm as other OpenMP regions",
};

const HOST_ONLY: FormatOption = FormatOption {
    name: "host-only",
    value_name: "",
    values: &[],
    default: "",
    help: "write only threads of the host and no devices, as Scalasca requires",
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
    /// The enumerators that are used.
    pub enums: Enums,
    /// Leave out what devices did: Scalasca takes no locations but threads of the host.
    pub host_only: bool,
}

/// Enumerators of which version of OTF2: readers of older versions know no others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Enums {
    /// 3.0 and before.
    V3_0,
    /// 3.1 and later: target regions, kernels and cancellation have enumerators of their own.
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
    /// The archive's part of what is set.
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
