//! A session of LTTng around one run: LTTng's own daemons take the events from the program and write them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::{output, succeeds};
use crate::result::Result;

/// How long the daemon may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// A daemon of our own, and in it a session that records. Both end when it is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    daemon: Child,
}

impl Session {
    /// # Errors
    /// LTTng's programs cannot be run.
    pub(crate) fn begin(output_folder: &Path) -> Result<Session> {
        let daemon = Command::new("lttng-sessiond")
            .args(["--quiet", "--no-kernel"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot run lttng-sessiond: {error}"))?;
        let session = Session { daemon };
        let start = Instant::now();
        while !succeeds(&mut lttng(&["list"])) {
            if start.elapsed() > PATIENCE {
                return Err("lttng-sessiond does not answer".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let place = format!("--output={}", output_folder.display());
        output(&mut lttng(&["create", "bench", &place]))?;
        // Sub-buffers as large as the floor's ring, enough of them that nothing is discarded.
        let channel = ["enable-channel", "-u", "channel", "--subbuf-size=1M", "--num-subbuf=16"];
        output(&mut lttng(&channel))?;
        output(&mut lttng(&["enable-event", "-u", "-c", "channel", "omptrace_bench:*"]))?;
        output(&mut lttng(&["start"]))?;
        Ok(session)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Whatever fails here shows in the run's files.
        let _ = output(&mut lttng(&["destroy"]));
        // SAFETY: the daemon is our child and was not waited for yet. It ends its own children on this signal.
        unsafe { libc::kill(self.daemon.id() as i32, libc::SIGTERM) };
        let _ = self.daemon.wait();
    }
}

fn lttng(words: &[&str]) -> Command {
    let mut command = Command::new("lttng");
    command.arg("--no-sessiond").args(words);
    command
}
