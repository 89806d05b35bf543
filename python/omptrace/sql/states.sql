-- The useful and lost time of each thread as intervals. The intervals of a thread do not overlap.
SELECT run, process, thread, place, 'useful' AS cause, begin_ns, end_ns FROM work
UNION ALL
SELECT run, process, thread, place, cause, begin_ns, end_ns FROM waits
