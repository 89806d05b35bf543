-- The three longest instances of each parallel region, loop and task, with their threads, to look at in a viewer.
WITH ranked AS (
  SELECT slices.run, slices.process, slices.thread, slices.place, begin_ns, end_ns,
    row_number() OVER (
      PARTITION BY slices.run, construct, file, line, position ORDER BY end_ns - begin_ns DESC, slices.process, begin_ns
    ) AS nth,
    construct, file, line, function, position
  FROM slices JOIN places
    ON places.run = slices.run AND places.process = slices.process AND places.place = slices.place
  WHERE category IN ('parallel', 'work', 'task')
)
SELECT ranked.run, ranked.process, threads.name AS thread, construct, file, line, function, position,
  begin_ns, end_ns, end_ns - begin_ns AS duration_ns
FROM ranked JOIN threads
  ON threads.run = ranked.run AND threads.process = ranked.process AND threads.thread = ranked.thread
WHERE nth <= 3
ORDER BY ranked.run, duration_ns DESC, ranked.process, begin_ns
