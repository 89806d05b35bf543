"""Many traces with Spark: executors convert them, and the same SQL as for DuckDB computes the numbers of `stats`.

    import omptrace.spark

    omptrace.spark.convert(spark, ["/scratch/job/traces"], "/scratch/job/tables")
    omptrace.spark.efficiency(spark, "/scratch/job/tables").show()

Traces and tables must be on a file system that all machines can access. Each executor runs the program `omptrace`.
"""

import json
import os
import shutil
import uuid
from pathlib import Path

from . import sql as queries
from .dataset import SCHEMA_FILE, lacks_position
from .program import program as find_program


def convert(spark, traces, out, parts=None, run=None, program=None, options=()):
    """Converts traces into the tables of a data set, which appears as `out` when it is complete.

    spark: the session.
    traces: traces, or folders of traces, as for `omptrace convert`.
    out: the folder, which must not exist.
    parts: the number of tasks into which the work is divided. If None, four for each processor of the executors.
    run: the name of the run. If None, it is derived from the traces.
    program: the path of `omptrace` on the executors. If None, the path on this machine.
    options: additional options for `omptrace convert`.

    A task that fails, or whose executor dies, is repeated and writes the same files. Each file gets its name when it is
    complete.

    Raises FileExistsError if `out` exists. If a part fails permanently, raises Spark's exception and creates nothing at
    `out`.
    """
    out = Path(os.path.abspath(out))
    if out.exists():
        raise FileExistsError(f"{out} exists; remove it or choose another folder")
    context = spark.sparkContext
    parts = parts or 4 * max(context.defaultParallelism, 1)
    # What an executor leaves that died lies beside the tables, in here, and goes with it.
    unfinished = out.with_name(f".{out.name}.{uuid.uuid4().hex}")
    tables = unfinished / "tables"
    words = [program or find_program(), "convert", *(os.path.abspath(trace) for trace in traces)]
    words += ["--to", "parquet", "-o", str(tables), "--jobs", "1", *options]
    words += ["--run", run] if run else []

    def convert_part(part):
        # Executors need not have this package.
        import subprocess

        command = [*words, "--part", f"{part}/{parts}"]
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if ran.returncode != 0:
            raise RuntimeError(ran.stderr.decode(errors="replace").strip())
        return part

    unfinished.mkdir(parents=True)
    try:
        context.parallelize(range(1, parts + 1), parts).map(convert_part).collect()
        (tables / "_SUCCESS").touch()
        os.rename(tables, out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def tables(spark, path, wanted=None):
    """Makes the tables of a data set and the queries of `omptrace.sql` temporary views of the session. Returns their
    names.

    wanted: restricts this to these tables and to the queries that need no others.
    """
    folder = Path(path)
    schema = json.loads((folder / SCHEMA_FILE).read_text(encoding="utf-8"))
    names = []
    for table in schema["tables"]:
        name = table["name"]
        files = folder / f"table={name}"
        if files.is_dir() and (wanted is None or name in wanted):
            spark.read.schema(_columns(table)).parquet(str(files)).createOrReplaceTempView(name)
            names.append(name)
    for view in queries.possible(names):
        spark.sql(queries.query(view)).createOrReplaceTempView(view)
        names.append(view)
    return names


def _columns(table):
    """The columns of a table as Spark writes types, with those of its folders."""
    types = {"INTEGER": "INT", "BIGINT": "BIGINT", "BOOLEAN": "BOOLEAN", "VARCHAR": "STRING"}
    columns = [f"`{column['name']}` {types[column['type']]}" for column in table["columns"]]
    if lacks_position(table["name"], [column["name"] for column in table["columns"]]):
        columns.append("`position` STRING")
    return ", ".join([*columns, "`run` STRING", "`process` INT"])


def _view(spark, path, view):
    tables(spark, path, queries.VIEWS[view])
    return spark.table(view)


def efficiency(spark, path):
    """Like `omptrace.Dataset.efficiency`, but returns a Spark data frame."""
    return _view(spark, path, "job_efficiency")


def accounting(spark, path):
    """Like `omptrace.Dataset.accounting`, but returns a Spark data frame."""
    return _view(spark, path, "job_accounting")


def blame(spark, path):
    """Like `omptrace.Dataset.blame`, but returns a Spark data frame."""
    return _view(spark, path, "job_blame")


def rank_balance(spark, path):
    """Like `omptrace.Dataset.rank_balance`, but returns a Spark data frame."""
    return _view(spark, path, "rank_balance")
