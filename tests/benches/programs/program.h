/* What a program of the benchmark is: work() does `count` times what the program's name says, as
 * often whichever the number of threads and however slow the tool. Counts are fixed where EPCC's
 * benchmarks repeat until a time has passed: runs of one count raise the same events, so that what
 * two tools cost can be subtracted and divided by the number of events. measure.c has main(). */
#ifndef PROGRAM_H
#define PROGRAM_H

void work(long count);

/* A body for constructs, as EPCC's delay(): some 10 ns that the compiler must keep. */
static inline void delay(void) {
  for (int i = 0; i < 10; i++)
    __asm__ volatile("" : "+r"(i));
}

#endif
