-- N and T of each run: the threads of processes that ran at the same time, and the time from first begin to last end.
WITH changes AS (
  SELECT run, begin_ns AS time_ns, 1 AS is_begin, threads AS change FROM processes
  UNION ALL
  SELECT run, end_ns AS time_ns, 0 AS is_begin, -threads AS change FROM processes
),
alive AS (
  SELECT run, sum(change) OVER (
    PARTITION BY run ORDER BY time_ns, is_begin ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS threads
  FROM changes
),
busiest AS (
  SELECT run, CAST(max(threads) AS BIGINT) AS threads FROM alive GROUP BY run
),
lives AS (
  SELECT run, count(*) AS processes, min(begin_ns) AS begin_ns, max(end_ns) AS end_ns,
    max(critical_path_ns) AS critical_path_ns
  FROM processes GROUP BY run
)
SELECT lives.run, processes, threads, end_ns - begin_ns AS duration_ns, critical_path_ns
FROM lives JOIN busiest ON lives.run = busiest.run
