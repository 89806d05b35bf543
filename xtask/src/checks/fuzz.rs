//! Fuzzing, from the corpus that the repository keeps.

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use crate::process::{cargo, command, host, root, run};
use crate::result::Result;

/// The targets: the binaries of `tests/fuzz/Cargo.toml`.
const TARGETS: &[&str] = &["read", "unpack", "metadata", "convert", "seal"];
/// Larger inputs are not kept: the repository would grow by megabytes.
const MAX_BYTES_KEPT: u64 = 8 << 10;
/// More memory than any input may take.
const MAX_MEMORY_MB: u32 = 2048;
/// Seconds that one input may take: far more than any does.
const MAX_SECONDS: u32 = 60;

/// Lets libFuzzer try all that reads what others wrote.
#[derive(Debug, clap::Args)]
pub(crate) struct Fuzz {
    /// The targets to fuzz [default: all]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(TARGETS))]
    targets: Vec<String>,
    /// Time for each target
    #[arg(long, default_value_t = 1)]
    minutes: u32,
    /// Seed of the random numbers from which inputs are made [default: a different seed each time]
    #[arg(long)]
    seed: Option<u32>,
    /// Afterwards, store the inputs that reached new code in tests/fuzz/corpus.tar.gz
    #[arg(long)]
    keep: bool,
}

impl Fuzz {
    /// All targets, each for `minutes`.
    pub(crate) fn all(minutes: u32) -> Fuzz {
        Fuzz { targets: Vec::new(), minutes, seed: None, keep: false }
    }
}

/// Runs the targets, side by side.
///
/// # Errors
/// An input failed, which is kept below `tests/fuzz/artifacts`; or a target could not be built.
pub(crate) fn run_targets(arguments: &Fuzz) -> Result<()> {
    let folder = root().join("tests/fuzz");
    // From its own folder, since its flags are in `.cargo/config.toml` there; which flags for the whole would replace.
    run(cargo(["build", "--release", "--bins"])
        .current_dir(&folder)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_TARGET_DIR"))?;
    let kept = folder.join("corpus.tar.gz");
    if kept.exists() {
        run(command("tar", ["-xzf", "corpus.tar.gz", "--skip-old-files"]).current_dir(&folder))?;
    }
    let programs = programs(&folder)?;
    let chosen = TARGETS.iter().filter(|target| {
        arguments.targets.is_empty() || arguments.targets.iter().any(|chosen| chosen == *target)
    });
    let chosen: Vec<&str> = chosen.copied().collect();
    let fuzz = |target: &str| -> std::result::Result<(), String> {
        let (corpus, artifacts) = (format!("corpus/{target}"), format!("artifacts/{target}/"));
        for made in [&corpus, &artifacts] {
            fs::create_dir_all(folder.join(made)).map_err(|error| format!("{made}: {error}"))?;
        }
        run(command(programs.join(target), [&corpus])
            .arg(format!("-max_total_time={}", 60 * arguments.minutes))
            // libFuzzer takes 0 for one of its own choice.
            .arg(format!("-seed={}", arguments.seed.unwrap_or(0)))
            .arg(format!("-rss_limit_mb={MAX_MEMORY_MB}"))
            .arg(format!("-timeout={MAX_SECONDS}"))
            .arg(format!("-artifact_prefix={artifacts}"))
            .arg("-print_final_stats=1")
            .arg("-verbosity=0")
            .current_dir(&folder))
        .map_err(|error| format!("{target}: {error}"))
    };
    let ends: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = chosen.iter().map(|target| scope.spawn(|| fuzz(target))).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    for (target, end) in chosen.iter().zip(&ends) {
        if end.is_err() {
            show_failures(&folder.join(format!("artifacts/{target}")))?;
        }
    }
    if let Some(error) = ends.into_iter().find_map(std::result::Result::err) {
        return Err(error.into());
    }
    for target in chosen {
        let corpus = format!("corpus/{target}");
        if arguments.keep {
            let least = format!("corpus/{target}.least");
            fs::create_dir_all(folder.join(&least))?;
            run(command(programs.join(target), ["-set_cover_merge=1", &least, &corpus]).current_dir(&folder))?;
            remove_large(&folder.join(&least))?;
            fs::remove_dir_all(folder.join(&corpus))?;
            fs::rename(folder.join(&least), folder.join(&corpus))?;
        }
    }
    if arguments.keep {
        // The same files make the same archive.
        let same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"];
        run(command("tar", same).args(["-czf", "corpus.tar.gz", "corpus"]).current_dir(&folder))?;
    }
    Ok(())
}

/// Prints the inputs that failed, so that whoever has the output only can repeat it.
fn show_failures(artifacts: &Path) -> Result<()> {
    for input in fs::read_dir(artifacts)? {
        let input = input?;
        if input.metadata()?.len() <= MAX_BYTES_KEPT {
            println!("{}, in base64:", input.path().display());
            run(&mut command("base64", [input.path()]))?;
        }
    }
    Ok(())
}

/// Removes inputs of more than [`MAX_BYTES_KEPT`].
fn remove_large(corpus: &Path) -> Result<()> {
    for input in fs::read_dir(corpus)? {
        let input = input?;
        if input.metadata()?.len() > MAX_BYTES_KEPT {
            fs::remove_file(input.path())?;
        }
    }
    Ok(())
}

/// The folder of the programs: cargo puts them below the name of the target that its configuration names.
fn programs(folder: &Path) -> Result<PathBuf> {
    Ok(folder.join("target").join(host()?).join("release"))
}
