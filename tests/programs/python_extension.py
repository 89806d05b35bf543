"""A Python program whose extension, built by GCC from openmp_library.c, uses OpenMP.

    python_extension.py LIBRARY [THREADS 2] [TIMES 3] [RUNTIME]

parallel_begin: TIMES. Prints `checksum TIMES * THREADS`. Then asks RUNTIME, too, how many threads it would use, as threadpoolctl
asks each runtime that it finds.
"""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
library.count_threads.restype = ctypes.c_long
threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
times = int(sys.argv[3]) if len(sys.argv) > 3 else 3
total = sum(library.count_threads(threads) for _ in range(times))
print("checksum", total)
if len(sys.argv) > 4:
    assert ctypes.CDLL(sys.argv[4]).omp_get_max_threads() > 0
sys.exit(total != times * threads)
