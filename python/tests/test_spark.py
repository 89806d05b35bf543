"""Many traces by real Spark, on executors that are processes of their own, one of which dies.

$OMPTRACE_TEST_TRACES is a folder of traces. The numbers must be those of `omptrace stats` of the same.
"""

import json
import os
import shutil
import stat
import tempfile
import unittest
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import omptrace.spark
from omptrace.program import program, run

TRACES = os.environ["OMPTRACE_TEST_TRACES"]

# Kills the executor that it runs in, the first time: the nearest Java above it.
KILLS_ONCE = """#!/bin/sh
if mkdir "{marker}" 2>/dev/null; then
    above=$$
    while [ "$above" -gt 1 ]; do
        above=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$above/status")
        if [ "$(cat "/proc/$above/comm")" = java ]; then kill -9 "$above"; exit 1; fi
    done
fi
exec "{program}" "$@"
"""


class Spark(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        builder = SparkSession.builder.master("local-cluster[2,1,1024]")
        for key, value in {
            "spark.ui.enabled": "false",
            "spark.executor.memory": "512m",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            # Small tables need few tasks, and no code of their own: that is most of the time here.
            "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
            "spark.sql.files.openCostInBytes": "0",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
        }.items():
            builder = builder.config(key, value)
        cls.spark = builder.getOrCreate()

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()
        # What executors wrote beside Spark.
        shutil.rmtree(Path(os.environ["SPARK_HOME"]) / "work", ignore_errors=True)

    def test_an_executor_that_dies_costs_a_retry_and_the_numbers_are_those_of_stats(self):
        with tempfile.TemporaryDirectory() as folder:
            marker, wrapper, out = (Path(folder) / name for name in ("marker", "omptrace", "tables"))
            wrapper.write_text(KILLS_ONCE.format(marker=marker, program=program()))
            wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
            omptrace.spark.convert(self.spark, [TRACES], out, parts=4, program=str(wrapper))
            self.assertTrue(marker.is_dir(), "no executor was killed")
            self.assertEqual({path.name for path in Path(folder).iterdir()}, {"marker", "omptrace", "tables"})
            with self.assertRaises(FileExistsError):
                omptrace.spark.convert(self.spark, [TRACES], out)

            stats = json.loads(run("stats", TRACES, "--json", "--all"))
            [row] = omptrace.spark.efficiency(self.spark, out).collect()
            ratios = stats["efficiency"]
            self.assertEqual(row["processes"], len(list(Path(TRACES).glob("*.omptrace"))))
            self.assertEqual(row["threads"], stats["threads"])
            self.assertEqual(row["duration_ns"], stats["duration_ns"])
            self.assertEqual(row["critical_path_ns"], stats["critical_path"]["useful_ns"])
            self.assertEqual(row["parallel_efficiency"], ratios["parallel"])
            self.assertEqual(row["load_balance"], ratios["load_balance"])
            self.assertEqual(row["communication_efficiency"], ratios["communication"])
            self.assertEqual(row["serialisation"], ratios["serialisation"])
            self.assertEqual(row["transfer"], ratios["transfer"])
            sums = {row["cause"]: row["ns"] for row in omptrace.spark.accounting(self.spark, out).collect()}
            for cause, ns in stats["accounting"].items():
                if cause != "total_ns":
                    self.assertEqual(sums.get(cause.removesuffix("_ns"), 0), ns, cause)
            names = ("cause", "construct", "file", "line", "function", "position", "ns")
            blame = {tuple(row[name] for name in names) for row in omptrace.spark.blame(self.spark, out).collect()}
            for blamed in stats["blame"]:
                blamed["construct"] = ("!$omp " if blamed["is_directive"] else "") + blamed["construct"]
            expected = {tuple(blamed.get(name) for name in names) for blamed in stats["blame"]}
            self.assertEqual(blame, expected)

            # What DuckDB makes of the same files.
            data = omptrace.open(out)
            [by_duckdb] = data.efficiency().fetchall()
            self.assertEqual(tuple(row), by_duckdb)


if __name__ == "__main__":
    unittest.main()
