/* A library with one region. With -DSECOND its code is the same, at the same addresses, but from another file. */
#ifdef SECOND
#line 100 "second.c"
#endif
int count(void) {
  int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum) /* library */
  sum++;
  return sum;
}
