/* What is inlined before a construct, from another file. */
static inline __attribute__((always_inline)) void in_header(long *sum) {
  __atomic_fetch_add(sum, 1, __ATOMIC_RELAXED);
}
