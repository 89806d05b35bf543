-- Useful work on the longest chain of work, by source location, of the process whose chain is the longest.
WITH ranked AS (
  SELECT run, process, row_number() OVER (PARTITION BY run ORDER BY critical_path_ns DESC, process) AS nth
  FROM processes
)
SELECT path.run, path.process, construct, file, line, function, position, ns
FROM critical_path AS path JOIN ranked ON ranked.run = path.run AND ranked.process = path.process
WHERE ranked.nth = 1
ORDER BY path.run, ns DESC, construct, file, line
