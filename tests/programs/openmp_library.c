/* A shared library that uses OpenMP: loaded by dlclose.c, and by python_extension.py through
 * ctypes.
 *
 * parallel_begin: 1 per call. */
long count_threads(int threads) {
  long sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  sum += 1;
  return sum;
}
