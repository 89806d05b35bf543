/* Works for ever, to be killed; tells its parent what it had finished.
 *
 *     kill_me FILE [THREADS 2]
 *
 * FILE is made and shared with the parent. It holds, per OpenMP thread number, four 64-bit numbers
 * in the machine's byte order. A number grows only after all callbacks of the construct were made,
 * so a trace must hold at least as many of these events:
 *
 *     regions    parallel_end of the initial thread (only thread 0 counts these)
 *     criticals  mutex_released of this thread
 *     tasks      task_schedule of this thread with a task that completed
 *     loops      work end of this thread
 *
 * A thread number names the same OS thread all the time: the teams are all of the same size, and
 * there is one program thread that starts them. The line `ready` on stdout says that the file is in
 * place. */
#include <fcntl.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct finished {
  _Atomic uint64_t regions, criticals, tasks, loops;
};

static void more(_Atomic uint64_t *counter) {
  atomic_fetch_add_explicit(counter, 1, memory_order_release);
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  int threads = argc > 2 ? atoi(argv[2]) : 2;
  size_t bytes = threads * sizeof(struct finished);
  int file = open(argv[1], O_CREAT | O_RDWR | O_TRUNC, 0644);
  if (file < 0 || ftruncate(file, bytes) != 0)
    return 2;
  struct finished *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (all == MAP_FAILED)
    return 2;
  /* Each runtime has started its tool by now. */
  omp_set_dynamic(0);
  puts("ready");
  fflush(stdout);

  for (;;) {
#pragma omp parallel num_threads(threads)
    {
      struct finished *mine = &all[omp_get_thread_num()];
#pragma omp for schedule(dynamic) nowait
      for (int i = 0; i < 4 * threads; i++)
        ;
      more(&mine->loops);
#pragma omp critical
      {
      }
      more(&mine->criticals);
      for (int i = 0; i < 4; i++) {
        /* Undeferred: finished, on this thread, when the construct is left. */
#pragma omp task if (0)
        {
          /* GCC leaves out a task that does nothing. */
          __asm__ volatile("");
        }
        more(&mine->tasks);
      }
    }
    more(&all[0].regions);
  }
}
