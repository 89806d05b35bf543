"""Traces of OpenMP programs as tables, and where the time of their threads went.

    import omptrace

    run = omptrace.open("app.omptrace")       # or a folder of traces, or the output of `convert --to parquet`
    run.efficiency().df()                     # numbers of `omptrace stats`, as a pandas frame
    run.sql("SELECT cause, sum(end_ns - begin_ns) FROM waits GROUP BY cause").show()

Times are in nanoseconds since the start of the job. docs/columns.md describes the tables, docs/python.md gives a tour.
"""

from .annotations import count, mark, phase
from .dataset import Dataset, Report, open
from .program import ProgramError, program
from .recording import Recording, record

__all__ = [
    "Dataset",
    "ProgramError",
    "Recording",
    "Report",
    "count",
    "mark",
    "open",
    "phase",
    "program",
    "record",
]
__version__ = "0.2.0"
