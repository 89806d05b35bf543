-- The causes of waits, longest first: the rows of a cause add up to its time in job_accounting.
WITH named AS (
  SELECT run, cause, construct, file, line, function, position, ns FROM blame
  UNION ALL
  SELECT job.run, 'unobserved' AS cause, 'no process' AS construct, CAST(NULL AS STRING) AS file,
    CAST(NULL AS INTEGER) AS line, CAST(NULL AS STRING) AS function, CAST(NULL AS STRING) AS position,
    greatest(job.threads * job.duration_ns - totals.ns, 0) AS ns
  FROM job JOIN (SELECT run, CAST(sum(ns) AS BIGINT) AS ns FROM accounting GROUP BY run) AS totals
    ON totals.run = job.run
)
SELECT run, cause, construct, file, line, function, position, CAST(sum(ns) AS BIGINT) AS ns
FROM named
GROUP BY run, cause, construct, file, line, function, position
HAVING sum(ns) > 0
ORDER BY run, ns DESC, cause, construct, file, line
