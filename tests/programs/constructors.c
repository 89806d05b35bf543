/* A library whose constructor, or destructor, uses OpenMP: `WHEN` is `opened` or `closed`. With `ON_A_THREAD` it waits for a thread
 * that does so. The loader holds a lock meanwhile. `FIRST` names the first construct. */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int made;
static int use(const char *what) {
  int n = 0;
  static omp_lock_t lock;
  static omp_nest_lock_t nest;
  if (!strcmp(what,"region1")) {
#pragma omp parallel num_threads(1) reduction(+:n)
    n++;
  } else if (!strcmp(what,"region2")) {
#pragma omp parallel num_threads(2) reduction(+:n)
    n++;
  } else if (!strcmp(what,"region6")) {
#pragma omp parallel num_threads(6) reduction(+:n)
    n++;
  } else if (!strcmp(what,"lock")) { omp_init_lock(&lock); omp_set_lock(&lock); n=1; omp_unset_lock(&lock); omp_destroy_lock(&lock);
  } else if (!strcmp(what,"nestlock")) { omp_init_nest_lock(&nest); omp_set_nest_lock(&nest); n=1; omp_unset_nest_lock(&nest); omp_destroy_nest_lock(&nest);
  } else if (!strcmp(what,"critical")) {
#pragma omp critical(there)
    n=1;
  } else if (!strcmp(what,"task")) {
#pragma omp parallel num_threads(2)
#pragma omp single
    { for (int i=0;i<4;i++) {
#pragma omp task shared(n)
#pragma omp atomic
    n++; }
#pragma omp taskwait
    }
  } else if (!strcmp(what,"orphantask")) {
#pragma omp task shared(n)
    n++;
#pragma omp taskwait
  } else if (!strcmp(what,"single")) {
#pragma omp single
    n++;
#pragma omp parallel num_threads(2)
    { int k;
#pragma omp single copyprivate(k)
    k=1;
#pragma omp atomic
    n+=k; }
  } else if (!strcmp(what,"sections")) {
#pragma omp parallel sections num_threads(2) reduction(+:n)
    { n++;
#pragma omp section
    n++;
#pragma omp section
    n++;
    }
  } else if (!strcmp(what,"loops")) {
#pragma omp parallel for num_threads(3) schedule(dynamic) reduction(+:n)
    for(int i=0;i<9;i++) n++;
#pragma omp parallel num_threads(3)
    {
#pragma omp for schedule(guided) reduction(+:n)
    for(int i=0;i<9;i++) n++;
#pragma omp for schedule(static) reduction(+:n)
    for(int i=0;i<9;i++) n++;
#pragma omp for schedule(runtime) reduction(+:n)
    for(int i=0;i<9;i++) n++;
    }
  } else if (!strcmp(what,"ordered")) {
#pragma omp parallel for num_threads(3) ordered schedule(dynamic)
    for(int i=0;i<9;i++) {
#pragma omp ordered
    n++; }
  } else if (!strcmp(what,"taskloop")) {
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskloop grainsize(2) shared(n)
    for(int i=0;i<9;i++) {
#pragma omp atomic
    n++; }
  } else if (!strcmp(what,"set")) { omp_set_num_threads(3); n=omp_get_max_threads();
  } else if (!strcmp(what,"target")) {
#pragma omp target map(tofrom:n)
    n=3;
  } else if (!strcmp(what,"teams")) {
#pragma omp teams num_teams(2) reduction(+:n)
    n++;
  } else if (!strcmp(what,"cancel")) {
#pragma omp parallel num_threads(2)
    {
#pragma omp atomic
    n++;
#pragma omp cancel parallel
    }
  } else if (!strcmp(what,"barrier")) {
#pragma omp parallel num_threads(3)
    {
#pragma omp atomic
    n++;
#pragma omp barrier
    }
  } else if (!strcmp(what,"depend")) {
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(out:n)
    n=1;
#pragma omp task depend(inout:n)
    n++;
#pragma omp taskgroup
    { 
#pragma omp task
    ;
    }
    }
  } else abort();
  return n;
}

static void *work(void *unused) {
  const char *const constructs[] = {"lock", "critical", "set", "orphantask", "region1", "region2", "region6", "nestlock", "task", "single", "sections", "loops", "ordered", "taskloop", "target", "teams", "cancel", "barrier", "depend"};
  const char *first = getenv("FIRST");
  made += first ? use(first) : 0;
  for (int i = 0; i < sizeof constructs / sizeof *constructs; i++)
    /* libgomp itself asks the loader for its plugins. */
    if (!getenv("ON_A_THREAD") || strcmp(constructs[i], "target"))
      made += use(constructs[i]);
  return unused;
}

static void go(const char *when) {
  const char *wanted = getenv("WHEN");
  if (!wanted || strcmp(wanted, when))
    return;
  if (getenv("ON_A_THREAD")) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
  } else {
    work(0);
  }
}

__attribute__((constructor)) static void begin(void) { go("opened"); }

__attribute__((destructor)) static void end(void) {
  go("closed");
  printf("%d\n", made);
  fflush(stdout);
}
