-- What each thread did or lost time to, interval by interval: those of one thread do not overlap.
SELECT run, process, thread, place, 'useful' AS cause, begin_ns, end_ns FROM work
UNION ALL
SELECT run, process, thread, place, cause, begin_ns, end_ns FROM waits
