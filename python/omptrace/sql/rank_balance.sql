-- The processes of a job: useful time, and how evenly it is divided among threads. The least useful time comes first.
WITH by_thread AS (
  SELECT run, process, thread, sum(ns) AS ns FROM accounting
  WHERE cause = 'useful' AND thread IS NOT NULL
  GROUP BY run, process, thread
),
by_process AS (
  SELECT run, process, CAST(sum(ns) AS BIGINT) AS useful_ns, CAST(max(ns) AS BIGINT) AS max_useful_ns
  FROM by_thread GROUP BY run, process
)
SELECT processes.run, processes.process, rank, name, host, threads, end_ns - begin_ns AS duration_ns,
  coalesce(useful_ns, 0) AS useful_ns, max_useful_ns,
  CAST(useful_ns AS DOUBLE) / threads / nullif(CAST(max_useful_ns AS DOUBLE), 0) AS load_balance,
  CAST(useful_ns AS DOUBLE) / threads / nullif(CAST(end_ns - begin_ns AS DOUBLE), 0) AS parallel_efficiency
FROM processes LEFT JOIN by_process
  ON by_process.run = processes.run AND by_process.process = processes.process
ORDER BY processes.run, useful_ns, processes.process
