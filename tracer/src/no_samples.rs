//! Replaces `samples` on CPU architectures without support for unwinding: a request for samples causes a warning.

use omptrace_settings::value::Sample;
use omptrace_trace_format::metadata::{Metadata, Sampling};

use crate::os::log::warning;
use crate::recorder::callback::Function;
use crate::runtime::lookup::Lookup;
use crate::session::Session;
use crate::session::hooks::SessionHooks;

/// No callbacks are replaced.
pub(crate) static OF_REGIONS: &[(&str, Function)] = &[];
pub(crate) static OF_TASKS: &[(&str, Function)] = &[];

/// Does nothing.
pub(crate) fn ask_by(_: Option<Lookup>) {}

/// Takes no samples.
#[derive(Debug)]
pub(crate) struct NoSampler;

pub(crate) static SESSION_HOOKS: NoSampler = NoSampler;

impl SessionHooks for NoSampler {
    /// Reports that samples are not supported, if they were requested.
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
