//! In the place of `samples`, on processors for which it has no unwinding: whoever asks for samples gets a warning.

use omptrace_settings::value::Sample;
use omptrace_trace_format::metadata::{Metadata, Sampling};

use crate::os::log::warning;
use crate::recorder::callback::Function;
use crate::runtime::lookup::Lookup;
use crate::session::Session;
use crate::session::hooks::SessionHooks;

/// No callbacks are others.
pub(crate) static OF_REGIONS: &[(&str, Function)] = &[];
pub(crate) static OF_TASKS: &[(&str, Function)] = &[];

/// Nothing is asked.
pub(crate) fn ask_by(_: Option<Lookup>) {}

/// Nobody is sampled.
#[derive(Debug)]
pub(crate) struct NoSampler;

pub(crate) static SESSION_HOOKS: NoSampler = NoSampler;

impl SessionHooks for NoSampler {
    /// Reports that there are none, to who asks for some.
    fn begin(&self, session: &'static Session) {
        let Sample::On(wanted) = session.config.sample else {
            return;
        };
        let problem = "no samples: sampling is supported only on x86_64 and aarch64";
        warning!("{problem}");
        session.write_metadata(&Metadata {
            sampling: Some(Sampling {
                clock: wanted.clock.name().to_owned(),
                period_ns: 1_000_000_000 / u64::from(wanted.rate),
                problems: vec![problem.to_owned()],
            }),
            ..Metadata::default()
        });
    }
}
