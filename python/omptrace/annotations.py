"""Names phases of a Python program for the tracer. Without it, nothing happens.

    with omptrace.phase("step", domain="solver"):
        ...

    @omptrace.phase("assemble")
    def assemble(): ...
"""

from __future__ import annotations

import contextlib
import ctypes
import os

_VERSION = 1
_TEXT = ctypes.c_char_p
_FUNCTIONS = [
    ("begin", ctypes.CFUNCTYPE(None, _TEXT, _TEXT)),
    ("end", ctypes.CFUNCTYPE(None, _TEXT)),
    ("frame_begin", ctypes.CFUNCTYPE(None, _TEXT)),
    ("frame_end", ctypes.CFUNCTYPE(None, _TEXT)),
    ("mark", ctypes.CFUNCTYPE(None, _TEXT, _TEXT)),
    ("count", ctypes.CFUNCTYPE(None, _TEXT, _TEXT, ctypes.c_int64)),
]


class _Functions(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), *_FUNCTIONS]


def _of_tracer():
    path = os.environ.get("OMPTRACE_ANNOTATION_LIBRARY")
    if not path:
        return None
    try:
        functions = ctypes.CDLL(path).omptrace_annotations
    except (OSError, AttributeError):
        return None
    functions.argtypes = [ctypes.c_uint32]
    functions.restype = ctypes.POINTER(_Functions)
    table = functions(_VERSION)
    return table.contents if table else None


_tracer = _of_tracer()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode(errors="replace")


class phase(contextlib.ContextDecorator):
    """A phase of the calling thread: until the end of a `with` block, or of the function that it decorates."""

    def __init__(self, name: str, domain: str | None = None) -> None:
        self._name, self._domain = _bytes(name), _bytes(domain)

    def __enter__(self) -> phase:
        if _tracer is not None:
            _tracer.begin(self._domain, self._name)
        return self

    def __exit__(self, *_) -> None:
        if _tracer is not None:
            _tracer.end(self._domain)


def mark(name: str, domain: str | None = None) -> None:
    """Something happens now."""
    if _tracer is not None:
        _tracer.mark(_bytes(domain), _bytes(name))


def count(name: str, value: int, domain: str | None = None) -> None:
    """A counter has this value from now on."""
    if _tracer is not None:
        _tracer.count(_bytes(domain), _bytes(name), value)
