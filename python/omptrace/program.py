"""The program `omptrace`: where it is, and how it is run."""

import os
import shutil
import subprocess
import sysconfig
import tempfile
import weakref
from pathlib import Path


class ProgramError(RuntimeError):
    """`omptrace` is not there, or failed: the text is what it said."""


def program():
    """The path of the program: $OMPTRACE_PROGRAM, else that of the wheel, else the first in PATH.

    Raises ProgramError where there is none.
    """
    named = os.environ.get("OMPTRACE_PROGRAM")
    # Where pip puts it, also in an environment that is not active.
    carried = Path(sysconfig.get_path("scripts")) / "omptrace"
    for candidate in (named, str(carried), "omptrace"):
        found = candidate and shutil.which(candidate)
        if found:
            return found
        if candidate and candidate == named:
            raise ProgramError(f"OMPTRACE_PROGRAM={named} is no program")
    raise ProgramError("the program omptrace is not in PATH; install it, or set OMPTRACE_PROGRAM to its path")


def run(*arguments):
    """Runs the program and gives what it wrote to stdout.

    Raises ProgramError with what it wrote to stderr where it fails.
    """
    command = [program(), *map(os.fspath, arguments)]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if ran.returncode != 0:
        raise ProgramError(ran.stderr.decode(errors="replace").strip())
    return ran.stdout


class TemporaryFolder:
    """A folder that goes with the last reference to it, at the latest when Python ends."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="omptrace-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Recording:
    """What came of a recorded program: its exit status and its traces."""

    def __init__(self, returncode, folder, temporary=None):
        #: The program's exit status.
        self.returncode = returncode
        #: Where the traces are.
        self.folder = Path(folder)
        self._temporary = temporary

    @property
    def traces(self):
        """The paths of the traces."""
        return sorted(self.folder.glob("*.omptrace"))

    def open(self):
        """The traces as tables."""
        from .dataset import open as open_traces

        data = open_traces(self.traces)
        data._recording = self
        return data

    def __repr__(self):
        return f"<omptrace.Recording: {len(self.traces)} traces, exit status {self.returncode}>"


def record(command, output=None, env=None, options=(), check=True):
    """Runs a program under the tracer, and gives its traces; its output is the program's.

    command: the program and its arguments.
    output: a folder for the traces; a temporary one, which goes with the result, where it is None.
    env: the program's environment; this process's where it is None.
    options: further options of `omptrace record`.

    Raises ProgramError where the program failed (with `check`), or left no trace.
    """
    temporary = TemporaryFolder() if output is None else None
    folder = temporary.path if temporary else Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    pattern = folder / "%e.%p.omptrace"
    words = [program(), "record", "-o", pattern, *options, "--", *command]
    ran = subprocess.run(list(map(os.fspath, words)), env=env, check=False)
    recording = Recording(ran.returncode, folder, temporary)
    if check and ran.returncode != 0:
        raise ProgramError(f"{command[0]} ended with status {ran.returncode}")
    if not recording.traces:
        raise ProgramError(f"{command[0]} left no trace: `omptrace doctor {command[0]}` says why")
    return recording
