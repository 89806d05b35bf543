"""Recorded programs: how they ended, and their traces."""

import os
import subprocess
from pathlib import Path

from .dataset import open as open_traces
from .program import ProgramError, TemporaryFolder, program


class Recording:
    """The result of a recorded program: its exit status and its traces."""

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
        """Returns the traces as tables."""
        data = open_traces(self.traces)
        data._recording = self
        return data

    def __repr__(self):
        return f"<omptrace.Recording: {len(self.traces)} traces, exit status {self.returncode}>"


def record(command, output=None, env=None, options=(), check=True):
    """Runs a program under the tracer and returns its traces. The program's output is not captured.

    command: the program and its arguments.
    output: a folder for the traces. If None, a temporary folder, which is deleted together with the result.
    env: the environment of the program. If None, that of this process.
    options: additional options for `omptrace record`.

    Raises ProgramError if the program failed (with `check`) or left no trace.
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
