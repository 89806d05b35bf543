"""The tables by real DuckDB, compared with `omptrace stats --json` of the same traces.

$OMPTRACE_TEST_JOBS is a JSON list of jobs: each a list of traces or folders of them.
"""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

import omptrace
from omptrace.program import run

JOBS = json.loads(os.environ["OMPTRACE_TEST_JOBS"])


def stats_of(job):
    return json.loads(run("stats", *job, "--json", "--all"))


def place(row):
    construct = ("!$omp " if row["is_directive"] else "") + row["construct"]
    return (construct, *(row[name] for name in ("file", "line", "function", "position")))


class Numbers(unittest.TestCase):
    """Sums by SQL are those of `stats`, to the nanosecond."""

    def each(self):
        for job in JOBS:
            with self.subTest(job=job):
                yield omptrace.open(job), stats_of(job)

    def test_accounting(self):
        for data, stats in self.each():
            sums = dict(data.sql("SELECT cause, ns FROM job_accounting").fetchall())
            expected = stats["accounting"]
            for cause in expected:
                if cause != "total_ns":
                    self.assertEqual(sums.pop(cause.removesuffix("_ns"), 0), expected[cause], cause)
            self.assertEqual(sums, {})

    def test_intervals_add_up_to_sums(self):
        for data, _ in self.each():
            intervals = data.sql(
                "SELECT process, thread, place, cause, sum(end_ns - begin_ns)::BIGINT FROM states GROUP BY ALL"
            )
            sums = data.sql("SELECT process, thread, place, cause, ns FROM accounting WHERE thread IS NOT NULL")
            self.assertEqual(set(intervals.fetchall()), set(sums.fetchall()))
            overlaps = data.sql(
                """SELECT count(*) FROM (SELECT begin_ns, lag(end_ns) OVER (PARTITION BY process, thread
                ORDER BY begin_ns, end_ns) AS before FROM states) WHERE begin_ns < before"""
            )
            self.assertEqual(overlaps.fetchall(), [(0,)])

    def test_only_what_no_thread_did_has_no_thread(self):
        for data, _ in self.each():
            causes = data.sql("SELECT DISTINCT cause FROM accounting WHERE thread IS NULL AND ns > 0")
            allowed = {("serial",), ("narrow_team",), ("unobserved",), ("tracer",)}
            self.assertLessEqual(set(causes.fetchall()), allowed)

    def test_blame(self):
        for data, stats in self.each():
            rows = data.blame().fetchall()
            expected = {(row["cause"], *place(row), row["ns"]) for row in stats["blame"]}
            self.assertEqual({row[1:] for row in rows}, expected)

    def test_regions(self):
        for data, stats in self.each():
            rows = data.sql(
                """SELECT construct, file, line, function, position, visits, duration_ns, total_ns, useful_ns
                FROM job_regions"""
            ).fetchall()
            sums = [(row, row["accounting"]) for row in stats["regions"]]
            expected = {
                (*place(row), row["visits"], row["duration_ns"], ns["total_ns"], ns["useful_ns"])
                for row, ns in sums
            }
            self.assertEqual(set(rows), expected)

    def test_efficiency(self):
        for data, stats in self.each():
            names = [
                "threads",
                "duration_ns",
                "critical_path_ns",
                "parallel_efficiency",
                "load_balance",
                "communication_efficiency",
                "serialisation",
                "transfer",
            ]
            [row] = data.efficiency().select(*names).fetchall()
            of = stats["efficiency"]
            self.assertEqual(
                row[:3], (stats["threads"], stats["duration_ns"], stats["critical_path"]["useful_ns"])
            )
            ratios = ("parallel", "load_balance", "communication", "serialisation", "transfer")
            self.assertEqual(row[3:], tuple(of[name] for name in ratios))

    def test_critical_path(self):
        for data, stats in self.each():
            rows = data.sql("SELECT construct, file, line, function, position, ns FROM job_critical_path").fetchall()
            expected = {(*place(row), row["ns"]) for row in stats["critical_path"]["rows"]}
            self.assertEqual(set(rows), expected)


class Tables(unittest.TestCase):
    """What happened, as tables."""

    @classmethod
    def setUpClass(cls):
        cls.data = [omptrace.open(job) for job in JOBS]

    def count(self, query):
        return sum(data.sql(query).fetchall()[0][0] for data in self.data)

    def test_each_table_has_the_columns_that_it_says(self):
        for data in self.data:
            for table in data.schema["tables"]:
                if table["name"] == "events":
                    continue
                columns = [column["name"] for column in table["columns"]]
                self.assertEqual(data.table(table["name"]).columns, [*columns, "process", "run"])

    def test_what_refers_to_something_finds_it(self):
        for table, column, other in [
            ("slices", "thread", "threads"),
            ("slices", "place", "places"),
            ("waits", "place", "places"),
            ("tasks", "place", "places"),
            ("flows", "from_thread", "threads"),
        ]:
            key = other.removesuffix("s")
            query = f"""SELECT count(*) FROM {table} AS t WHERE NOT EXISTS (SELECT 1 FROM {other} AS o
                WHERE o.run = t.run AND o.process = t.process AND o.{key} = t.{column}) AND t.{column} IS NOT NULL"""
            self.assertEqual(self.count(query), 0, query)
            self.assertGreater(self.count(f"SELECT count(*) FROM {table}"), 0, table)

    def test_things_end_after_they_begin(self):
        for table in ("slices", "work", "waits", "tasks", "teams", "locks"):
            query = f"SELECT count(*) FROM {table} WHERE end_ns < begin_ns"
            self.assertEqual(self.count(query), 0, table)

    def test_teams_have_their_slices_and_mutexes_their_holders(self):
        self.assertGreater(self.count("SELECT count(*) FROM teams WHERE size > 1 AND place IS NOT NULL"), 0)
        self.assertGreater(self.count("SELECT count(*) FROM locks WHERE end_ns IS NOT NULL"), 0)
        query = "SELECT count(*) FROM waits WHERE blamed_thread = thread"
        self.assertEqual(self.count(query), 0)
        query = "SELECT count(*) FROM waits WHERE cause IN ('lock', 'critical') AND blamed_place IS NOT NULL"
        self.assertGreater(self.count(query), 0)

    def test_frames(self):
        data = self.data[0]
        rows = data.sql("SELECT count(*) FROM slices").fetchall()[0][0]
        self.assertEqual(len(data.slices.df()), rows)
        self.assertEqual(data.slices.pl().height, rows)
        self.assertEqual(data.slices.to_arrow_table().num_rows, rows)
        self.assertEqual(list(data.efficiency().df()["processes"]), [len(data.processes.df())])
        for metric in ("flat_profile", "load_imbalance", "rank_balance", "slowest_instances"):
            self.assertGreater(len(getattr(data, metric)().fetchall()), 0, metric)

    def test_sums_alone_give_the_same_numbers(self):
        sums = omptrace.open(JOBS[0], options=["--sums-only"])
        self.assertEqual(sums.efficiency().fetchall(), self.data[0].efficiency().fetchall())
        self.assertEqual(sums.sql("SELECT count(*) FROM slices").fetchall(), [(0,)])

    def test_raw_events(self):
        data = omptrace.open(JOBS[0], options=["--raw-events"])
        counts = data.sql("SELECT process, count(*) FROM events GROUP BY process ORDER BY process")
        expected = data.sql("SELECT process, events FROM processes ORDER BY process")
        self.assertEqual(counts.fetchall(), expected.fetchall())
        json.loads(data.sql("SELECT arguments FROM events LIMIT 1").fetchall()[0][0])

    def test_report(self):
        page = self.data[0].report()
        self.assertIn("<iframe", page._repr_html_())
        with tempfile.TemporaryDirectory() as folder:
            page.save(Path(folder) / "report.html")

    def test_errors_say_what_happened(self):
        with self.assertRaisesRegex(omptrace.ProgramError, "no-such-file"):
            omptrace.open("no-such-file")
        with self.assertRaises(AttributeError):
            self.data[0].no_such_table


class Recordings(unittest.TestCase):
    """A program that is run from a notebook."""

    def test_record(self):
        program = os.environ["OMPTRACE_TEST_PROGRAM"]
        recording = omptrace.record([program], env={**os.environ, "OMP_NUM_THREADS": "2"})
        self.assertEqual(recording.returncode, 0)
        data = recording.open()
        self.assertEqual(data.sql("SELECT threads FROM processes").fetchall(), [(2,)])


if __name__ == "__main__":
    sys.exit(unittest.main())
