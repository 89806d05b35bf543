-- Outermost parallel regions by source location, sorted by lost time.
WITH visited AS (
  SELECT run, construct, file, line, function, position, CAST(sum(visits) AS BIGINT) AS visits,
    CAST(sum(duration_ns) AS BIGINT) AS duration_ns
  FROM regions WHERE cause = 'useful'
  GROUP BY run, construct, file, line, function, position
),
timed AS (
  SELECT run, construct, file, line, function, position, CAST(sum(ns) AS BIGINT) AS total_ns,
    CAST(sum(CASE WHEN cause = 'useful' THEN ns ELSE 0 END) AS BIGINT) AS useful_ns
  FROM regions
  GROUP BY run, construct, file, line, function, position
)
SELECT visited.run, visited.construct, visited.file, visited.line, visited.function,
  visited.position, visited.visits, visited.duration_ns, timed.total_ns, timed.useful_ns,
  timed.total_ns - timed.useful_ns AS lost_ns,
  CAST(timed.useful_ns AS DOUBLE) / nullif(CAST(timed.total_ns AS DOUBLE), 0) AS parallel_efficiency
FROM visited JOIN timed
  ON timed.run = visited.run AND timed.construct = visited.construct
  AND timed.file IS NOT DISTINCT FROM visited.file AND timed.line IS NOT DISTINCT FROM visited.line
  AND timed.function IS NOT DISTINCT FROM visited.function
  AND timed.position IS NOT DISTINCT FROM visited.position
ORDER BY visited.run, lost_ns DESC, visited.construct, visited.file, visited.line
