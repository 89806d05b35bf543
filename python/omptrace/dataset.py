"""A data set: the tables of one or more runs and their metrics, read by DuckDB."""

import builtins
import html
import json
from pathlib import Path

from . import sql as queries
from .program import TemporaryFolder
from .program import run as run_program

#: The newest version of the tables that this package knows. Newer ones only add to them.
SCHEMA_VERSION = 5
SCHEMA_FILE = "_schema.json"
#: The tables with places. Those of versions before 3 have no `position`.
WITH_POSITION = ("places", "blame", "regions", "critical_path")


def _duckdb():
    """The module DuckDB, which only tables need."""
    try:
        import duckdb
    except ImportError as error:
        raise ImportError("tables require DuckDB: run pip install 'omptrace[data]' or pip install duckdb") from error
    return duckdb


def lacks_position(table, columns):
    """Whether the queries need a column of a table that data sets of older versions do not have."""
    return table in WITH_POSITION and "position" not in columns


def open(path, run=None, options=()):
    """Returns the tables of traces.

    path: a trace, a folder of traces, a list of these, or a folder that `omptrace convert --to parquet` wrote.
    run: the name of the run in the tables, if traces are converted.
    options: additional options for `omptrace convert`.

    Traces are converted into a temporary folder, which is deleted together with the result. Raises ProgramError if the
    conversion fails.
    """
    paths = [Path(path)] if isinstance(path, (str, Path)) else [Path(each) for each in path]
    if len(paths) == 1 and (paths[0] / SCHEMA_FILE).is_file():
        return Dataset(paths[0])
    temporary = TemporaryFolder()
    folder = temporary.path / "tables"
    named = ["--run", run] if run else []
    run_program("convert", *paths, "--to", "parquet", "-o", folder, *named, *options)
    return Dataset(folder, traces=paths, temporary=temporary)


class Dataset:
    """The tables of one or more runs as DuckDB relations, and their metrics.

    Each table of docs/columns.md is an attribute, such as `data.slices`. A relation has `.df()` for pandas, `.pl()` for
    Polars, `.to_arrow_table()` for Arrow, `.show()`, and `.filter()`, `.aggregate()` and so on.
    """

    def __init__(self, folder, traces=(), temporary=None):
        self.folder = Path(folder)
        self._traces = list(traces)
        self._temporary = temporary
        self.connection = _duckdb().connect()
        with builtins.open(self.folder / SCHEMA_FILE, encoding="utf-8") as file:
            self.schema = json.load(file)
        self.tables = []
        for table in self.schema["tables"]:
            name = table["name"]
            if any(self.folder.glob(f"table={name}/run=*/process=*/*.parquet")):
                columns = [column["name"] for column in table["columns"]]
                self._create_table(name, lacks_position(name, columns))
        for view in queries.possible(self.tables):
            self.connection.execute(f"CREATE VIEW {view} AS {queries.query(view)}")

    def _create_table(self, name, lacks_position):
        added = ", CAST(NULL AS VARCHAR) AS position" if lacks_position else ""
        files = str(self.folder / f"table={name}" / "*" / "*" / "*.parquet").replace("'", "''")
        self.connection.execute(
            f"""CREATE VIEW {name} AS SELECT * EXCLUDE ("table"){added} FROM read_parquet('{files}',
            hive_partitioning=true, union_by_name=true, hive_types={{'run': VARCHAR, 'process': INTEGER}})"""
        )
        self.tables.append(name)

    def __getattr__(self, name):
        if name.startswith("_") or name not in self.__dict__.get("tables", ()):
            raise AttributeError(f"the data set has no table {name}")
        return self.table(name)

    def __dir__(self):
        return [*super().__dir__(), *self.tables]

    def table(self, name):
        """Returns a table, or a view of `omptrace.sql.VIEWS`."""
        return self.connection.table(name) if name in self.tables else self.connection.view(name)

    def sql(self, query):
        """Returns the result of a query on the tables and views, in DuckDB's SQL."""
        return self.connection.sql(query)

    def efficiency(self):
        """The tree of efficiencies of each run: parallel efficiency is load balance x communication efficiency, and
        communication efficiency is serialisation x transfer."""
        return self.table("job_efficiency")

    def accounting(self):
        """N x T thread-nanoseconds of each run by cause."""
        return self.table("job_accounting")

    def blame(self):
        """The causes of waits, longest first."""
        return self.table("job_blame")

    def regions_by_loss(self):
        """Outermost parallel regions by source location, sorted by lost time."""
        return self.table("job_regions")

    def critical_path(self):
        """Useful work on the longest chain of work through all threads, by source location."""
        return self.table("job_critical_path")

    def flat_profile(self):
        """Useful and lost time by source location, without the time of nested constructs."""
        return self.table("flat_profile")

    def load_imbalance(self):
        """The load imbalance of each source location: the work of the busiest thread divided by the mean."""
        return self.table("load_imbalance")

    def rank_balance(self):
        """Useful time and load balance of each process, for comparison."""
        return self.table("rank_balance")

    def slowest_instances(self):
        """The longest instances of each region, loop and task."""
        return self.table("slowest_instances")

    def report(self):
        """Returns the page of `omptrace report`, which a notebook displays. Only for data sets opened from traces."""
        if not self._traces:
            raise ValueError(f"{self.folder} was opened without its traces, which the report requires")
        return Report(run_program("report", *self._traces, "-o", "-").decode())

    def __repr__(self):
        runs = self.connection.sql("SELECT run, count(*) FROM processes GROUP BY run ORDER BY run").fetchall()
        words = ", ".join(f"{run} ({count} processes)" for run, count in runs)
        return f"<omptrace.Dataset {words}>"


class Report:
    """A page of `omptrace report`."""

    def __init__(self, page):
        self.html = page

    def save(self, path):
        """Writes the page."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self):
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:80vh;border:0"></iframe>'
