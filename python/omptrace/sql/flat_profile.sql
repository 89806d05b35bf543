-- Useful and lost time by source location: exclusive times of all processes, largest first.
SELECT sums.run, coalesce(construct, 'serial code') AS construct, file, line, function, position,
  CAST(sum(CASE WHEN cause = 'useful' THEN ns ELSE 0 END) AS BIGINT) AS useful_ns,
  CAST(sum(CASE WHEN cause = 'useful' THEN 0 ELSE ns END) AS BIGINT) AS lost_ns,
  CAST(sum(ns) AS BIGINT) AS total_ns
FROM accounting AS sums LEFT JOIN places
  ON places.run = sums.run AND places.process = sums.process AND places.place = sums.place
WHERE sums.thread IS NOT NULL
GROUP BY sums.run, coalesce(construct, 'serial code'), file, line, function, position
ORDER BY sums.run, total_ns DESC, construct, file, line
