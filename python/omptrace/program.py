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
