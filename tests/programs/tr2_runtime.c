/* An OpenMP runtime that speaks TR2, OMPT of 2014, as LLVM 3.8 does: it asks the weak function ompt_tool for the tool's
 * initializer. It has parallel regions of one thread, and their two events. Like LLVM's, it says in its destructor how its threads
 * end, and that it is done.
 *
 *     omp_get_max_threads() answers 1 and starts the runtime; old_region() is a parallel region. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef void (*interface_fn_t)(void);
typedef int (*initialize_t)(interface_fn_t (*lookup)(const char *), const char *version, unsigned number);

__attribute__((weak)) initialize_t ompt_tool(void) { return NULL; }

enum { PARALLEL_BEGIN = 1, PARALLEL_END = 2, THREAD_BEGIN = 5, THREAD_END = 6, SHUTDOWN = 8, EVENTS = 9 };
static interface_fn_t callbacks[EVENTS];
static int started, active;

static int set_callback(int event, interface_fn_t callback) {
  if (event != PARALLEL_BEGIN && event != PARALLEL_END && event != THREAD_BEGIN && event != THREAD_END &&
      event != SHUTDOWN)
    return event >= 1 && event <= 61 ? 1 : 0;
  callbacks[event] = callback;
  return 4;
}

static interface_fn_t lookup(const char *name) {
  return strcmp(name, "ompt_set_callback") ? NULL : (interface_fn_t)set_callback;
}

static void start(void) {
  if (started)
    return;
  started = 1;
  initialize_t initialize = ompt_tool();
  active = initialize && initialize(lookup, "TR2 runtime", 1);
  if (active && callbacks[THREAD_BEGIN])
    ((void (*)(int, uint64_t))callbacks[THREAD_BEGIN])(1, 1);
}

__attribute__((destructor)) static void shut_down(void) {
  if (active && callbacks[THREAD_END])
    ((void (*)(int, uint64_t))callbacks[THREAD_END])(1, 1);
  if (active && callbacks[SHUTDOWN])
    callbacks[SHUTDOWN]();
}

int omp_get_max_threads(void) {
  start();
  return 1;
}

void old_region(void (*body)(void)) {
  static uint64_t region;
  start();
  region++;
  if (active && callbacks[PARALLEL_BEGIN])
    ((void (*)(uint64_t, void *, uint64_t, uint32_t, void *))callbacks[PARALLEL_BEGIN])(
        1, NULL, region, 1, (void *)body);
  body();
  if (active && callbacks[PARALLEL_END])
    ((void (*)(uint64_t, uint64_t))callbacks[PARALLEL_END])(region, 1);
}
