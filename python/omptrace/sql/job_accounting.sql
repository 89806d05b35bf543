-- N x T thread-nanoseconds of each run by cause, as in `stats`. Time in which a process did not run is unobserved.
WITH sums AS (
  SELECT run, cause, CAST(sum(ns) AS BIGINT) AS ns FROM accounting GROUP BY run, cause
),
totals AS (
  SELECT run, CAST(sum(ns) AS BIGINT) AS ns FROM sums GROUP BY run
),
absent AS (
  SELECT job.run, 'unobserved' AS cause, greatest(job.threads * job.duration_ns - totals.ns, 0) AS ns
  FROM job JOIN totals ON job.run = totals.run
),
both_sums AS (
  SELECT * FROM sums
  UNION ALL
  SELECT * FROM absent
)
SELECT run, cause, CAST(sum(ns) AS BIGINT) AS ns FROM both_sums GROUP BY run, cause HAVING sum(ns) <> 0
