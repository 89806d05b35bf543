/* Undeferred tasks with dependences, and taskwaits with dependences: a thread waits for them in a task of its own.
 *
 *     undeferred_tasks HOW
 *
 * recursion      tasks below a cut-off are undeferred; a task waits while its thread runs another that waits; also in the
 *                barrier at the end of the region. Prints `checksum 144`
 * nested         a taskwait whose thread runs tasks with taskwaits meanwhile. Prints `checksum 5`
 * regions        each thread of three regions has a taskwait. Prints `checksum 9`
 * mutexinoutset  20 deferred tasks, 20 undeferred ones that have that dependence, alone or behind two others. Prints `checksum 40`
 * inoutset       the same (clang 22). Prints `checksum 40`
 * both           one thread creates deferred tasks with dependences while another creates an undeferred one.
 *                Prints `checksum 2001`
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long recursion(int n) {
  if (n < 2)
    return n;
  long a, b, sum;
#pragma omp task depend(out : a) shared(a) if (n > 8)
  a = recursion(n - 1);
#pragma omp task depend(out : b) shared(b) if (n > 8)
  b = recursion(n - 2);
#pragma omp task depend(in : a, b) shared(a, b, sum) if (0)
  sum = a + b;
  return sum;
}

static int nested(void) {
  int a = 0, done = 0;
#pragma omp task depend(out : a) shared(a)
  {
    usleep(20000);
    a = 1;
  }
  for (int i = 0; i < 4; i++) {
#pragma omp task shared(done)
    {
      int x = 0;
#pragma omp task depend(out : x) shared(x)
      {
        usleep(1000);
        x = 1;
      }
#pragma omp taskwait depend(in : x)
#pragma omp atomic
      done += x;
    }
  }
#pragma omp taskwait depend(in : a)
  done += a;
#pragma omp taskwait
  return done;
}

static int sets(const char *how) {
  int x = 0, y = 0, z = 0, n = 0;
  for (int i = 0; i < 20; i++) {
#pragma omp task depend(inout : x) shared(n)
    n++;
  }
  for (int i = 0; i < 20; i++) {
#ifdef INOUTSET
    if (how[0] == 'i' && i % 2 == 0) {
#pragma omp task if (0) depend(inoutset : z) shared(n)
      n++;
      continue;
    }
    if (how[0] == 'i') {
#pragma omp task if (0) depend(in : x) depend(inout : y) depend(inoutset : z) shared(n)
      n++;
      continue;
    }
#endif
    if (i % 2 == 0) {
#pragma omp task if (0) depend(mutexinoutset : z) shared(n)
      n++;
      continue;
    }
#pragma omp task if (0) depend(in : x) depend(inout : y) depend(mutexinoutset : z) shared(n)
    n++;
  }
  return n;
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  long sum = 0;
  if (strcmp(how, "recursion") == 0) {
#pragma omp parallel num_threads(2)
#pragma omp single nowait
#pragma omp task
    sum = recursion(12);
  } else if (strcmp(how, "nested") == 0) {
#pragma omp parallel num_threads(2)
#pragma omp single
    sum = nested();
  } else if (strcmp(how, "regions") == 0) {
    for (int i = 0; i < 3; i++) {
#pragma omp parallel num_threads(3)
      {
        int x = 0;
#pragma omp task depend(out : x) shared(x)
        {
          usleep(1000);
          x = 1;
        }
#pragma omp taskwait depend(in : x)
#pragma omp atomic
        sum += x;
      }
    }
  } else if (strcmp(how, "both") == 0) {
    int go = 0;
#pragma omp parallel num_threads(3)
    {
      int x = 0;
#pragma omp for schedule(static, 1)
      for (int i = 0; i < 3; i++) {
        for (int j = 0; j < (i < 2 ? 1000 : 1); j++) {
          int started;
#pragma omp atomic read
          started = go;
          while (i == 2 && started < 200) {
#pragma omp atomic read
            started = go;
          }
#pragma omp task depend(mutexinoutset : x) shared(x, sum) if (i < 2)
          {
#pragma omp atomic
            sum++;
          }
#pragma omp atomic
          go++;
        }
#pragma omp taskwait
      }
    }
  } else {
#pragma omp parallel num_threads(2)
#pragma omp single
    sum = sets(how);
  }
  printf("checksum %ld\n", sum);
  return 0;
}
