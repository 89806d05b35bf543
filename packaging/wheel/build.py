"""Makes the wheel: the Python package of `python/`, with the program, its libraries and its man page.

    build.py TREE OUT PLATFORM

TREE has bin/, lib/ and share/, as `cargo xtask dist` makes it. The program comes to lie in the environment's bin/ and finds the
libraries in ../lib: no Python runs where it runs.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*words):
    # Elsewhere than in a folder with a `packaging`, which Python would take for the module of that name.
    subprocess.run([sys.executable, "-m", *map(str, words)], check=True, cwd=tempfile.gettempdir())


def main(tree, out, platform):
    tree, out = pathlib.Path(tree).resolve(), pathlib.Path(out).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        source = scratch / "source"
        # setuptools builds in the folder of the sources.
        shutil.copytree(ROOT / "python", source, ignore=shutil.ignore_patterns("tests", "build", "*.egg-info"))
        for name in ("LICENSE-APACHE", "LICENSE-MIT", "README.md"):
            shutil.copy(ROOT / name, source / name)
        run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", scratch, source)
        (pure,) = scratch.glob("*.whl")
        run("wheel", "unpack", "--dest", scratch, pure)
        (package,) = (path for path in scratch.iterdir() if path.is_dir() and path != source)
        # Such as `omptrace-0.2.0`.
        data = package / f"{package.name}.data"
        for name in ("bin/omptrace",):
            place(tree / name, data / "scripts" / pathlib.Path(name).name)
        for name in (
            "lib/libomptrace.so",
            "lib/libomptgomp.so",
            "lib/libomptrace_waits.so",
            "lib/libomptmpi.so",
            "lib/libomptmpi4.so",
            "lib/libomptmpi4c.so",
            "include/omptrace.h",
            "include/omptrace.f90",
            "share/man/man1/omptrace.1",
        ):
            place(tree / name, data / "data" / name)
        run("wheel", "pack", "--dest-dir", scratch, package)
        # The tag says which systems have what the program needs.
        (pure,) = scratch.glob("*.whl")
        run("wheel", "tags", "--remove", "--python-tag", "py3", "--abi-tag", "none", "--platform-tag", platform, pure)
        (wheel,) = scratch.glob("*.whl")
        unpacked = scratch / "again"
        run("wheel", "unpack", "--dest", unpacked, wheel)
        (package,) = unpacked.iterdir()
        (facts,) = package.glob("*.dist-info/WHEEL")
        facts.write_text(facts.read_text().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false"))
        wheel.unlink()
        run("wheel", "pack", "--dest-dir", out, package)


def place(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
