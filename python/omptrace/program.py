"""The program `omptrace`: where it is, and how it is run."""

import os
import shutil
import subprocess
import sysconfig
import tempfile
import weakref
from pathlib import Path


class ProgramError(RuntimeError):
    """`omptrace` was not found, or it failed; the text is its error message."""


def program():
    """Returns the path of the program: $OMPTRACE_PROGRAM, else the one in the wheel, else the first in PATH.

    Raises ProgramError if there is none.
    """
    named = os.environ.get("OMPTRACE_PROGRAM")
    # Where pip puts it, also in an environment that is not active.
    carried = Path(sysconfig.get_path("scripts")) / "omptrace"
    for candidate in (named, str(carried), "omptrace"):
        found = candidate and shutil.which(candidate)
        if found:
            return found
        if candidate and candidate == named:
            raise ProgramError(f"OMPTRACE_PROGRAM={named} is not a program")
    raise ProgramError("the program omptrace is not in PATH; install it, or set OMPTRACE_PROGRAM to its path")


def run(*arguments):
    """Runs the program and returns what it wrote to stdout.

    If it fails, raises ProgramError with what it wrote to stderr.
    """
    command = [program(), *map(os.fspath, arguments)]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if ran.returncode != 0:
        raise ProgramError(ran.stderr.decode(errors="replace").strip())
    return ran.stdout


class TemporaryFolder:
    """A folder that is deleted with the last reference to it, or when Python ends."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="omptrace-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
