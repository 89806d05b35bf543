-- The tree of efficiencies of each run, from 0 to 1, as in `stats`: POP's hybrid model without MPI.
WITH sums AS (
  SELECT run, CAST(sum(ns) AS BIGINT) AS total_ns,
    CAST(sum(CASE WHEN cause = 'useful' THEN ns ELSE 0 END) AS BIGINT) AS useful_ns
  FROM job_accounting GROUP BY run
),
by_thread AS (
  SELECT run, process, thread, sum(ns) AS ns FROM accounting
  WHERE cause = 'useful' AND thread IS NOT NULL
  GROUP BY run, process, thread
),
by_process AS (
  SELECT run, process, max(ns) AS ns FROM by_thread GROUP BY run, process
),
-- Of processes that run in turn, each takes the threads of the one before.
longest AS (
  SELECT processes.run, CAST(max(coalesce(by_process.ns, 0)) AS BIGINT) AS ns,
    CAST(sum(processes.threads * coalesce(by_process.ns, 0)) AS BIGINT) AS of_threads,
    CAST(max(critical_path_ns) AS BIGINT) AS path_ns,
    CAST(sum(processes.threads * critical_path_ns) AS BIGINT) AS path_of_threads
  FROM processes
  LEFT JOIN by_process ON by_process.run = processes.run AND by_process.process = processes.process
  GROUP BY processes.run
),
busiest AS (
  SELECT longest.run,
    CAST(greatest(ns, (of_threads - of_threads % job.threads) / job.threads) AS BIGINT) AS ns,
    CAST(greatest(path_ns, (path_of_threads - path_of_threads % job.threads) / job.threads) AS BIGINT) AS path_ns
  FROM longest JOIN job ON job.run = longest.run
)
SELECT job.run, job.processes, job.threads, job.duration_ns, sums.total_ns, sums.useful_ns,
  busiest.ns AS max_useful_ns, job.critical_path_ns,
  CAST(sums.useful_ns AS DOUBLE) / nullif(CAST(sums.total_ns AS DOUBLE), 0) AS parallel_efficiency,
  CAST(sums.useful_ns AS DOUBLE) / CAST(job.threads AS DOUBLE) / nullif(CAST(busiest.ns AS DOUBLE), 0) AS load_balance,
  CAST(busiest.ns AS DOUBLE) / nullif(CAST(job.duration_ns AS DOUBLE), 0) AS communication_efficiency,
  CAST(busiest.ns AS DOUBLE) / nullif(CAST(busiest.path_ns AS DOUBLE), 0) AS serialisation,
  CAST(busiest.path_ns AS DOUBLE) / nullif(CAST(job.duration_ns AS DOUBLE), 0) AS transfer
FROM job
JOIN sums ON sums.run = job.run
LEFT JOIN busiest ON busiest.run = job.run
