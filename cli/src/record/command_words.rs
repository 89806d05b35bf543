//! Finds words in a command and its scripts that explain why the tracer does not reach the programs that are started.
//!
//! The tracer reaches programs through environment variables and files. Another root directory lacks the files, a
//! cleared environment lacks the variables, and another user may not be able to read the files. After the run, it
//! cannot be seen which of these happened, but the words of the command and of the scripts that it runs show which is
//! likely.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::system::executable::{Kind, Program};

/// Programs that run another program as another user.
const USER_CHANGERS: &[&str] = &["su", "sudo", "doas", "runuser", "setpriv", "gosu", "chpst", "setuidgid"];

/// Programs that run another program in another root directory, usually that of a container.
const ROOT_CHANGERS: &[&str] = &[
    "chroot",
    "arch-chroot",
    "schroot",
    "pivot_root",
    "bwrap",
    "systemd-nspawn",
    "docker",
    "podman",
    "apptainer",
    "singularity",
    "charliecloud",
    "ch-run",
    "enroot",
    "proot",
];

/// The words of a command, and of the scripts among its programs.
pub(crate) struct Words(Vec<String>);

impl Words {
    /// Splits the command, and the commands passed to shells, into words.
    pub(crate) fn of(command: &[OsString], programs: &[Program]) -> Words {
        let arguments = command.iter().map(|word| word.to_string_lossy().into_owned());
        let scripts = programs.iter().filter_map(script);
        let texts: Vec<String> = arguments.chain(scripts).collect();
        let is_end = |letter: char| letter.is_whitespace() || ";|&()'\"`".contains(letter);
        let words = texts.iter().flat_map(|text| text.split(is_end));
        Words(words.map(str::to_owned).collect())
    }

    fn name_one_of(&self, names: &[&str]) -> bool {
        let mut called = self.0.iter().map(|word| word.rsplit('/').next().unwrap_or_default());
        called.any(|name| names.contains(&name))
    }

    /// Whether a program runs as another user.
    pub(crate) fn change_user(&self) -> bool {
        self.name_one_of(USER_CHANGERS)
    }

    /// The likely reason why programs were not reached, and what to do about it. `needs_preload`: only `LD_PRELOAD`
    /// reaches them.
    pub(crate) fn obstacle(&self, needs_preload: bool) -> Option<(&'static str, &'static str)> {
        if self.name_one_of(ROOT_CHANGERS) {
            return Some((
                "the program ran in another root directory, which does not contain the tracer's libraries",
                "install omptrace in that root directory as well, mount /proc in that directory, and start the program there with: omptrace record -- PROGRAM",
            ));
        }
        if self.clear_environment() {
            return Some((
                "the environment variables that load the tracer were cleared before the program started",
                "after clearing the environment, start the program with: omptrace record -- PROGRAM",
            ));
        }
        if needs_preload && self.replace_preload() {
            return Some((
                "LD_PRELOAD, which contains the tracer's libraries, was overwritten or cleared before the program started",
                "keep the old value of LD_PRELOAD, as in LD_PRELOAD=other.so:$LD_PRELOAD, or start the program with: omptrace record -- PROGRAM",
            ));
        }
        None
    }

    /// Each word with the following one.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let behind = self.0.iter().skip(1).map(String::as_str).chain([""]);
        self.0.iter().map(String::as_str).zip(behind)
    }

    fn clear_environment(&self) -> bool {
        let is_env = |word: &str| word.rsplit('/').next() == Some("env");
        self.pairs().any(|(word, next)| is_env(word) && matches!(next, "-" | "-i" | "--ignore-environment"))
    }

    /// Whether `LD_PRELOAD` is set to a value that does not include the previous one.
    fn replace_preload(&self) -> bool {
        self.pairs().any(|(word, next)| match word.split_once("LD_PRELOAD=") {
            // A quoted value is a separate word here.
            Some((_, value)) => !value.contains("LD_PRELOAD") && !next.contains("LD_PRELOAD"),
            None => matches!(word, "unset" | "-u") && next == "LD_PRELOAD" || word == "--unset=LD_PRELOAD",
        })
    }
}

/// The directory that becomes the program's root, if the command itself contains it: `sudo chroot DIR PROGRAM`.
pub(crate) fn new_root(command: &[OsString]) -> Option<&Path> {
    let is_chroot = |word: &&OsString| {
        let name = Path::new(word).file_name();
        name.is_some_and(|name| name == "chroot" || name == "arch-chroot")
    };
    let mut words = command.iter().skip_while(|word| !is_chroot(word)).skip(1);
    let directory = words.find(|word| !word.as_encoded_bytes().starts_with(b"-"))?;
    Some(Path::new(directory))
}

/// The text of a script.
fn script(program: &Program) -> Option<String> {
    /// Longer scripts call commands in other files.
    const MAX_BYTES: u64 = 64 << 10;

    if !matches!(program.kind, Kind::Script { .. }) {
        return None;
    }
    let mut text = Vec::new();
    let file = File::open(&program.path).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &[&str]) -> Words {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        Words::of(&command, &[])
    }

    #[test]
    fn another_root_is_seen_in_the_command() {
        for (command, root) in [
            (&["chroot", "/srv/root", "/app"][..], Some("/srv/root")),
            (&["sudo", "/usr/sbin/chroot", "--userspec=a:b", "root", "/app"], Some("root")),
            (&["chroot"], None),
            (&["sh", "-c", "chroot root /app; ./other"], None),
            (&["./app", "root"], None),
        ] {
            let command: Vec<OsString> = command.iter().map(OsString::from).collect();
            assert_eq!(new_root(&command), root.map(Path::new), "{command:?}");
        }
    }

    #[test]
    fn a_change_of_the_user_is_seen_in_scripts() {
        let changes = |command: &[&str]| words(command).change_user();
        assert!(changes(&["/usr/bin/sudo", "-u", "nobody", "app"]));
        assert!(changes(&["sh", "-c", "cd x; exec setpriv --reuid=1 ./app"]));
        assert!(!changes(&["./app", "--sudoku", "result"]));
    }

    #[test]
    fn a_change_of_the_root_or_of_the_environment_is_seen() {
        let reason = |command: &[&str]| words(command).obstacle(true).map(|(reason, _)| reason);
        let is_root = |command: &[&str]| reason(command).is_some_and(|reason| reason.contains("root"));
        let is_lost = |command: &[&str]| {
            reason(command)
                .is_some_and(|reason| reason.contains("LD_PRELOAD") || reason.contains("environment"))
        };
        assert!(is_root(&["sh", "-c", "cd x && /usr/sbin/chroot . /app"]));
        assert!(is_root(&["docker", "run", "image"]));
        for command in [
            &["env", "-i", "./app"][..],
            &["sh", "-c", "env - ./app"],
            &["env", "-u", "LD_PRELOAD", "./app"],
            &["env", "LD_PRELOAD=libjemalloc.so", "./app"],
            &["sh", "-c", "export LD_PRELOAD='a.so'; ./app"],
            &["sh", "-c", "unset LD_PRELOAD; ./app"],
        ] {
            assert!(is_lost(command), "{command:?}");
        }
        for command in [
            &["./app", "-i"][..],
            &["env", "A=1", "./app", "-i"],
            &["sh", "-c", "LD_PRELOAD=a.so:$LD_PRELOAD ./app"],
            &["sh", "-c", "LD_PRELOAD=\"a.so:${LD_PRELOAD}\" ./app"],
            &["sh", "-c", "echo $LD_PRELOAD; ./app"],
        ] {
            assert_eq!(reason(command), None, "{command:?}");
        }
    }
}
