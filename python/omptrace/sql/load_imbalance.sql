-- Load imbalance of each source location: the work of the busiest thread divided by the mean of the threads that had any.
WITH by_thread AS (
  SELECT sums.run, sums.process, sums.thread, coalesce(construct, 'serial code') AS construct, file, line, function, position,
    sum(ns) AS ns
  FROM accounting AS sums LEFT JOIN places
    ON places.run = sums.run AND places.process = sums.process AND places.place = sums.place
  WHERE sums.thread IS NOT NULL AND cause = 'useful'
  GROUP BY sums.run, sums.process, sums.thread, coalesce(construct, 'serial code'), file, line, function, position
)
SELECT run, construct, file, line, function, position, count(*) AS threads, CAST(sum(ns) AS BIGINT) AS useful_ns,
  CAST(max(ns) AS BIGINT) AS max_ns, CAST(sum(ns) AS DOUBLE) / count(*) AS mean_ns,
  CAST(max(ns) AS DOUBLE) / nullif(CAST(sum(ns) AS DOUBLE) / count(*), 0) AS imbalance
FROM by_thread
GROUP BY run, construct, file, line, function, position
ORDER BY run, useful_ns DESC, construct, file, line
