/* A collector of the Collector API of 2007 that only counts: what a trace of the same run must hold,
 * event for event.
 *
 * It is preloaded, looks for the runtime's function, and registers all 22 events and the first of
 * the runtime's own. COUNT_OUT names the file to write when the process ends, as count.c writes its:
 * {"parallel_begin":2,"idle/begin":1,...}, by the names of a trace. It asks the runtime for nothing.
 *
 * It shares no code with the tracer: that is its point.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 23, FIRST_OWN = 4096, OWN = 16 };
enum { START = 0, REGISTER = 1 };

/* By number, FORK first; events of the runtime's own come last. */
static const char *const names[EVENTS + 1] = {
    NULL,
    "parallel_begin",
    "parallel_end",
    "idle/begin",
    "idle/end",
    "sync_region_wait/begin",
    "sync_region_wait/end",
    "sync_region_wait/begin",
    "sync_region_wait/end",
    "mutex_wait/begin",
    "mutex_wait/end",
    "mutex_wait/begin",
    "mutex_wait/end",
    "mutex_wait/begin",
    "mutex_wait/end",
    "masked/begin",
    "masked/end",
    "work/begin",
    "work/end",
    "ordered/begin",
    "ordered/end",
    "mutex_wait/begin",
    "mutex_wait/end",
    "collector_event",
};
static atomic_ullong counts[EVENTS + 1];

static int (*api)(void *);

/* One request, and the size 0 that ends the list. The callback lies behind the event, unaligned. */
struct request {
  int32_t size, number, error, returned;
  int32_t event;
  char callback[sizeof(void *)];
  int32_t end;
};

static void on_event(int event) { counts[event < EVENTS ? event : EVENTS]++; }

static void ask(int number, int event) {
  struct request request = {offsetof(struct request, end), number, 0, 0, event, {0}, 0};
  void (*callback)(int) = on_event;
  memcpy(request.callback, &callback, sizeof callback);
  api(&request);
}

__attribute__((constructor)) static void start(void) {
  api = (int (*)(void *))dlsym(RTLD_DEFAULT, "__omp_collector_api");
  if (!api)
    return;
  ask(START, 0);
  for (int event = 1; event < EVENTS; event++)
    ask(REGISTER, event);
  for (int event = FIRST_OWN; event < FIRST_OWN + OWN; event++)
    ask(REGISTER, event);
}

static unsigned long long sum_of(const char *name) {
  unsigned long long sum = 0;
  for (int event = 1; event <= EVENTS; event++)
    if (strcmp(names[event], name) == 0)
      sum += counts[event];
  return sum;
}

/* Whether a name comes for the first time at this place. */
static int is_first(int event) {
  for (int before = 1; before < event; before++)
    if (strcmp(names[before], names[event]) == 0)
      return 0;
  return 1;
}

__attribute__((destructor)) static void write_counts(void) {
  const char *output = getenv("COUNT_OUT");
  FILE *file = api && output ? fopen(output, "w") : NULL;
  if (!file)
    return;
  const char *separator = "{";
  for (int event = 1; event <= EVENTS; event++) {
    if (!is_first(event) || !sum_of(names[event]))
      continue;
    fprintf(file, "%s\"%s\":%llu", separator, names[event], sum_of(names[event]));
    separator = ",";
  }
  fprintf(file, "%s}\n", *separator == '{' ? "{" : "");
  fclose(file);
}
