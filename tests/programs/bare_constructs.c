/* Each construct with all that may be left out left out: no iterations, no message, no dependences, null pointers.
 *
 *     bare_constructs all|error
 *
 * `error` ends with an error directive that has no message; some runtimes die at it without a tool, too. */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int counted;

static void count(void) {
#pragma omp atomic
  counted++;
}

static void loops(void) {
  int none = counted - counted;
#pragma omp parallel num_threads(2)
  {
#pragma omp for schedule(static)
    for (int i = 0; i < none; i++)
      count();
#pragma omp for schedule(dynamic) nowait
    for (int i = 0; i < none; i++)
      count();
#pragma omp for schedule(guided)
    for (int i = 0; i < none; i++)
      count();
#pragma omp for schedule(runtime)
    for (int i = 0; i < none; i++)
      count();
#pragma omp for ordered schedule(dynamic)
    for (int i = 0; i < 3; i++) {
#pragma omp ordered
      count();
    }
#pragma omp for ordered(1)
    for (int i = 0; i < 3; i++) {
#pragma omp ordered depend(sink : i - 1)
      count();
#pragma omp ordered depend(source)
    }
  }
}

static void parts(void) {
  int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
  {
    int copied = 0;
#pragma omp sections
    {
#pragma omp section
      ;
#pragma omp section
      count();
    }
#pragma omp sections nowait
    { ; }
#pragma omp single nowait
    ;
#pragma omp single copyprivate(copied)
    copied = 1;
#pragma omp master
    count();
#pragma omp critical
    ;
#pragma omp critical(named) hint(omp_sync_hint_contended)
    sum += copied;
#pragma omp flush
#pragma omp barrier
  }
  counted += sum;
#pragma omp parallel if (0)
  ;
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(2)
  ;
#pragma omp teams num_teams(1)
  ;
}

static void tasks(void) {
  int one = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
  {
#pragma omp task
    ;
#pragma omp task if (0)
    count();
#pragma omp task depend(inout : one)
    count();
#pragma omp task untied mergeable final(1)
    count();
#pragma omp taskwait
#pragma omp taskwait depend(in : one)
#pragma omp taskgroup
    ;
#pragma omp taskgroup task_reduction(+ : one)
    ;
#pragma omp taskloop
    for (int i = counted; i < 0; i++)
      count();
#pragma omp taskloop grainsize(1) nogroup
    for (int i = 0; i < 2; i++)
      count();
#pragma omp taskyield
    omp_event_handle_t event;
#pragma omp task detach(event)
    omp_fulfill_event(event);
  }
}

static void cancellations(void) {
#pragma omp parallel num_threads(2)
  {
#pragma omp cancellation point parallel
#pragma omp cancel parallel
  }
#pragma omp parallel num_threads(2)
  {
#pragma omp for
    for (int i = 0; i < 4; i++) {
#pragma omp cancel for
    }
#pragma omp sections
    {
#pragma omp section
      {
#pragma omp cancel sections
      }
    }
#pragma omp single
#pragma omp taskgroup
    {
#pragma omp task
      {
#pragma omp cancel taskgroup
      }
#pragma omp task
      ;
    }
  }
}

static void locks(void) {
  omp_lock_t lock;
  omp_nest_lock_t nested;
  omp_init_lock(&lock);
  omp_destroy_lock(&lock);
#ifdef __clang__
  omp_init_lock_with_hint(&lock, omp_sync_hint_none);
  omp_init_nest_lock_with_hint(&nested, omp_sync_hint_speculative);
#else
  omp_init_lock(&lock);
  omp_init_nest_lock(&nested);
#endif
  counted += omp_test_lock(&lock) + omp_test_lock(&lock);
  omp_unset_lock(&lock);
  omp_set_nest_lock(&nested);
  counted += omp_test_nest_lock(&nested);
  omp_unset_nest_lock(&nested);
  omp_unset_nest_lock(&nested);
  omp_destroy_nest_lock(&nested);
  omp_destroy_lock(&lock);
}

static void devices(void) {
#pragma omp target
  ;
#pragma omp target nowait
  ;
#pragma omp taskwait
#pragma omp target data map(tofrom : counted)
  ;
#pragma omp target update to(counted)
}

static void *thread(void *argument) {
#pragma omp parallel num_threads(2)
  count();
  return argument;
}

/* What the compilers call for an error directive: LLVM's and GCC's runtime. */
extern void __kmpc_error(void *place, int severity, const char *message) __attribute__((weak));
extern void GOMP_warning(const char *message, size_t length) __attribute__((weak));

int main(int argc, char **argv) {
  loops();
  parts();
  tasks();
  cancellations();
  locks();
  devices();
  pthread_t other;
  if (pthread_create(&other, NULL, thread, NULL) == 0)
    pthread_join(other, NULL);
#ifdef __clang__
  int results[] = {omp_control_tool(omp_control_tool_flush, 0, NULL), omp_control_tool(1000, -1, NULL)};
  counted += results[0] == results[1];
#endif
  printf("all done\n");
  fflush(stdout);
  if (argc > 1 && strcmp(argv[1], "error") == 0) {
    if (__kmpc_error)
      __kmpc_error(NULL, 1, NULL);
    else if (GOMP_warning)
      GOMP_warning(NULL, 0);
    printf("after the error\n");
  }
  return counted > 0 ? 3 : 1;
}
