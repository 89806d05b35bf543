/* An OMPT tool that only counts: what a trace of the same run must hold, event for event.
 *
 * It registers every host callback of OpenMP 5.2 (ids 1 to 37) except flush, and flush too with
 * COUNT_FLUSH=1. Both forms of the target callbacks are registered, as LLVM delivers the EMI form
 * only to a tool that took both.
 *
 * A runtime that speaks TR6, a draft of OpenMP 5.0, gets ids 1 to 30, which are the same there, and
 * idle as 31; one that speaks TR4, an earlier draft, the same with numbers that are two lower from
 * 16 on, as it has none for device_load and device_unload. That they pass fewer arguments does not
 * matter to who ignores them. A runtime that speaks TR2, of 2014, finds ompt_initialize in a
 * preloaded tool, and gets all its events, which are counted as what they are called today.
 *
 * COUNT_OUT names the file to write, as one JSON object:
 * {"parallel_begin":2,"implicit_task/begin":5,...}. A callback with an endpoint is counted once per
 * endpoint. What never came is left out. It is written when the runtime finalizes the tool, and
 * written again when the library is unloaded, for runs without finalize and for what came later. A
 * forked child counts from zero and writes FILE.PID, and so does a process that finds FILE taken by
 * another one.
 *
 * It shares no code with the tracer: that is its point.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <omp-tools.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLBACKS = 38, ENDPOINTS = 4, ompt_callback_idle = 31, IDLE_IN_TR4 = 29 };
enum generation { V5, TR6, TR4 };

/* Row: the callback's id. Column: 0 for callbacks without endpoint, else begin 1, end 2, beginend
 * 3. */
static atomic_ullong counts[CALLBACKS][ENDPOINTS];

static const char *const endpoint_names[ENDPOINTS] = {"", "/begin", "/end", "/beginend"};

/* The names by id, from the header's own list. */
static const char *names[CALLBACKS] = {
#define NAME(event, type, id) [id] = #event,
    FOREACH_OMPT_EVENT(NAME)
#undef NAME
};

static char output[4096];

static void count(int id, unsigned endpoint) {
  atomic_fetch_add_explicit(&counts[id][endpoint < ENDPOINTS ? endpoint : 0], 1,
                            memory_order_relaxed);
}

static void write_counts(void) {
  if (!output[0])
    return;
  FILE *file = fopen(output, "w");
  if (!file)
    return;
  const char *separator = "{";
  for (int id = 0; id < CALLBACKS; id++)
    for (int endpoint = 0; endpoint < ENDPOINTS; endpoint++) {
      unsigned long long n = atomic_load(&counts[id][endpoint]);
      if (!n)
        continue;
      const char *name = names[id] + strlen("ompt_callback_");
      fprintf(file, "%s\"%s%s\":%llu", separator, name, endpoint_names[endpoint], n);
      separator = ",";
    }
  fprintf(file, "%s}\n", *separator == '{' ? "{" : "");
  fclose(file);
}

/* Appends this process's id to the file's name. */
static void use_name_of_our_own(void) {
  size_t length = strlen(output);
  snprintf(output + length, sizeof output - length, ".%d", (int)getpid());
}

static void choose_output(void) {
  const char *name = getenv("COUNT_OUT");
  if (!name || strlen(name) + 16 > sizeof output)
    return;
  strcpy(output, name);
  int file = open(output, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (file >= 0)
    close(file);
  else if (errno == EEXIST)
    use_name_of_our_own();
}

static void start_anew_in_child(void) {
  memset(counts, 0, sizeof counts);
  if (output[0])
    use_name_of_our_own();
}

__attribute__((destructor)) static void unload(void) { write_counts(); }

/* ON(event, ...) defines on_event with those parameters; ON_SCOPE the same for a callback that has
 * an endpoint. */
#define ON(event, ...)                                                                             \
  static void on_##event(__VA_ARGS__) { count(ompt_callback_##event, 0); }
#define ON_SCOPE(event, ...)                                                                       \
  static void on_##event(__VA_ARGS__) { count(ompt_callback_##event, endpoint); }

ON(thread_begin, ompt_thread_t type, ompt_data_t *thread)
ON(thread_end, ompt_data_t *thread)
ON(parallel_begin, ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *parallel,
   unsigned requested, int flags, const void *codeptr)
ON(parallel_end, ompt_data_t *parallel, ompt_data_t *task, int flags, const void *codeptr)
ON(task_create, ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *new_task, int flags,
   int has_dependences, const void *codeptr)
ON(task_schedule, ompt_data_t *prior, ompt_task_status_t status, ompt_data_t *next)
ON_SCOPE(implicit_task, ompt_scope_endpoint_t endpoint, ompt_data_t *parallel, ompt_data_t *task,
         unsigned actual, unsigned index, int flags)
ON_SCOPE(sync_region_wait, ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint,
         ompt_data_t *parallel, ompt_data_t *task, const void *codeptr)
ON(mutex_released, ompt_mutex_t kind, ompt_wait_id_t wait_id, const void *codeptr)
ON(dependences, ompt_data_t *task, const ompt_dependence_t *dependences, int n)
ON(task_dependence, ompt_data_t *source, ompt_data_t *sink)
ON_SCOPE(work, ompt_work_t type, ompt_scope_endpoint_t endpoint, ompt_data_t *parallel,
         ompt_data_t *task, uint64_t n, const void *codeptr)
ON_SCOPE(masked, ompt_scope_endpoint_t endpoint, ompt_data_t *parallel, ompt_data_t *task,
         const void *codeptr)
ON_SCOPE(sync_region, ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint,
         ompt_data_t *parallel, ompt_data_t *task, const void *codeptr)
ON(lock_init, ompt_mutex_t kind, unsigned hint, unsigned implementation, ompt_wait_id_t wait_id,
   const void *codeptr)
ON(lock_destroy, ompt_mutex_t kind, ompt_wait_id_t wait_id, const void *codeptr)
ON(mutex_acquire, ompt_mutex_t kind, unsigned hint, unsigned implementation, ompt_wait_id_t wait_id,
   const void *codeptr)
ON(mutex_acquired, ompt_mutex_t kind, ompt_wait_id_t wait_id, const void *codeptr)
ON_SCOPE(nest_lock, ompt_scope_endpoint_t endpoint, ompt_wait_id_t wait_id, const void *codeptr)
ON(flush, ompt_data_t *thread, const void *codeptr)
ON(cancel, ompt_data_t *task, int flags, const void *codeptr)
ON_SCOPE(reduction, ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t *parallel,
         ompt_data_t *task, const void *codeptr)
ON(dispatch, ompt_data_t *parallel, ompt_data_t *task, ompt_dispatch_t kind, ompt_data_t instance)
ON(error, ompt_severity_t severity, const char *message, size_t length, const void *codeptr)
ON(device_initialize, int device, const char *type, ompt_device_t *handle,
   ompt_function_lookup_t lookup, const char *documentation)
ON(device_finalize, int device)
ON(device_load, int device, const char *file, int64_t offset, void *in_file, size_t bytes,
   void *host, void *on_device, uint64_t module)
ON(device_unload, int device, uint64_t module)
ON_SCOPE(target, ompt_target_t kind, ompt_scope_endpoint_t endpoint, int device, ompt_data_t *task,
         ompt_id_t target, const void *codeptr)
ON(target_data_op, ompt_id_t target, ompt_id_t op, ompt_target_data_op_t type, void *source,
   int source_device, void *destination, int destination_device, size_t bytes, const void *codeptr)
ON(target_submit, ompt_id_t target, ompt_id_t op, unsigned teams)
ON(target_map, ompt_id_t target, unsigned n, void **host, void **on_device, size_t *bytes,
   unsigned *flags, const void *codeptr)
ON_SCOPE(target_emi, ompt_target_t kind, ompt_scope_endpoint_t endpoint, int device,
         ompt_data_t *task, ompt_data_t *target_task, ompt_data_t *target, const void *codeptr)
ON_SCOPE(target_data_op_emi, ompt_scope_endpoint_t endpoint, ompt_data_t *target_task,
         ompt_data_t *target, ompt_id_t *op, ompt_target_data_op_t type, void *source,
         int source_device, void *destination, int destination_device, size_t bytes,
         const void *codeptr)
ON_SCOPE(target_submit_emi, ompt_scope_endpoint_t endpoint, ompt_data_t *target, ompt_id_t *op,
         unsigned teams)
ON(target_map_emi, ompt_data_t *target, unsigned n, void **host, void **on_device, size_t *bytes,
   unsigned *flags, const void *codeptr)

/* OpenMP 5.0 gave its number to reduction, which no draft has. */
ON_SCOPE(idle, ompt_scope_endpoint_t endpoint)

static void name_idle(void) { names[ompt_callback_idle] = "ompt_callback_idle"; }

/* The runtime hands this callback's result to the program, so it is no plain ON. */
static int on_control_tool(uint64_t command, uint64_t modifier, void *argument,
                           const void *codeptr) {
  count(ompt_callback_control_tool, 0);
  return omp_control_tool_success;
}

static int with_flush(void) {
  const char *flush = getenv("COUNT_FLUSH");
  return flush && strcmp(flush, "1") == 0;
}

static void start_counting(void) {
  choose_output();
  pthread_atfork(NULL, NULL, start_anew_in_child);
}

/* The callback's number in that generation; 0 where it has none. */
static int number_in(enum generation generation, int id) {
  if (generation == V5)
    return id;
  if (id >= ompt_callback_idle)
    return 0;
  if (generation == TR6 || id < ompt_callback_device_load)
    return id;
  return id <= ompt_callback_device_unload ? 0 : id - 2;
}

static int initialize(ompt_function_lookup_t, int, ompt_data_t *);
static void finalize(ompt_data_t *tool) { write_counts(); }
static ompt_start_tool_result_t result = {initialize, finalize, {0}};

/* TR4 and TR6 have no initial_device: TR6 passes the tool's data as the second argument, TR4 what
 * ompt_start_tool returned, and there is no third. The low half of such an address tells enough. */
static int initialize(ompt_function_lookup_t lookup, int initial_device, ompt_data_t *tool) {
  int address = initial_device;
  enum generation generation = address == (int)(uintptr_t)&result.tool_data ? TR6
                               : address == (int)(uintptr_t)&result         ? TR4
                                                                            : V5;
  ompt_set_callback_t set_callback = (ompt_set_callback_t)lookup("ompt_set_callback");
  start_counting();
#define SET(x)                                                                                     \
  if ((ompt_callback_##x != ompt_callback_flush || with_flush()) &&                                \
      number_in(generation, ompt_callback_##x))                                                    \
    set_callback(number_in(generation, ompt_callback_##x), (ompt_callback_t)on_##x);
  SET(thread_begin)
  SET(thread_end)
  SET(parallel_begin)
  SET(parallel_end)
  SET(task_create)
  SET(task_schedule)
  SET(implicit_task)
  SET(target)
  SET(target_data_op)
  SET(target_submit)
  SET(control_tool)
  SET(device_initialize)
  SET(device_finalize)
  SET(device_load)
  SET(device_unload)
  SET(sync_region_wait)
  SET(mutex_released)
  SET(dependences)
  SET(task_dependence)
  SET(work)
  SET(masked)
  SET(target_map)
  SET(sync_region)
  SET(lock_init)
  SET(lock_destroy)
  SET(mutex_acquire)
  SET(mutex_acquired)
  SET(nest_lock)
  SET(flush)
  SET(cancel)
  SET(reduction)
  SET(dispatch)
  SET(target_emi)
  SET(target_data_op_emi)
  SET(target_submit_emi)
  SET(target_map_emi)
  SET(error)
#undef SET
  if (generation != V5) {
    name_idle();
    set_callback(generation == TR4 ? IDLE_IN_TR4 : ompt_callback_idle, (ompt_callback_t)on_idle);
  }
  return 1;
}

ompt_start_tool_result_t *ompt_start_tool(unsigned omp_version, const char *runtime_version) {
  return &result;
}

enum { SHUTDOWN_IN_TR2 = 8 };

/* Events of TR2 by number, one or begin and end, and what they are called today. 69 and 70 are
 * LLVM's own. */
#define FOREACH_EVENT_OF_TR2(ONE, PAIR)                                                            \
  ONE(1, parallel_begin) ONE(2, parallel_end) ONE(3, task_create) ONE(4, task_schedule)            \
  ONE(5, thread_begin) ONE(6, thread_end) ONE(7, control_tool) PAIR(9, 10, idle)                   \
  PAIR(11, 12, sync_region_wait) PAIR(13, 14, sync_region_wait) PAIR(15, 16, sync_region_wait)     \
  ONE(17, mutex_released) ONE(18, mutex_released) ONE(19, mutex_released)                          \
  ONE(20, mutex_released) ONE(21, mutex_released)                                                  \
  PAIR(22, 23, implicit_task) PAIR(24, 25, implicit_task) ONE(26, task_schedule)                   \
  PAIR(27, 28, work) PAIR(29, 30, work) PAIR(31, 32, work) PAIR(33, 34, work) PAIR(35, 36, work)   \
  PAIR(37, 38, masked)                                                                             \
  PAIR(39, 40, sync_region) PAIR(41, 42, sync_region) PAIR(43, 44, sync_region)                    \
  PAIR(53, 45, nest_lock)                                                                          \
  ONE(46, mutex_acquire) ONE(47, mutex_acquire) ONE(48, mutex_acquire) ONE(49, mutex_acquire)      \
  ONE(50, mutex_acquire)                                                                           \
  ONE(51, mutex_acquired) ONE(52, mutex_acquired) ONE(54, mutex_acquired) ONE(55, mutex_acquired)  \
  ONE(56, mutex_acquired)                                                                          \
  ONE(57, lock_init) ONE(58, lock_init) ONE(59, lock_destroy) ONE(60, lock_destroy) ONE(61, flush) \
  ONE(69, dependences) ONE(70, task_dependence)

#define ON_ONE(number, event)                                                                      \
  static void on_tr2_##number(void) { count(ompt_callback_##event, 0); }
#define ON_PAIR(begin, end, event)                                                                 \
  static void on_tr2_##begin(void) { count(ompt_callback_##event, ompt_scope_begin); }             \
  static void on_tr2_##end(void) { count(ompt_callback_##event, ompt_scope_end); }
FOREACH_EVENT_OF_TR2(ON_ONE, ON_PAIR)

/* A runtime of TR2 calls this, or what ompt_tool returns. */
int ompt_initialize(ompt_function_lookup_t lookup, const char *runtime_version,
                    unsigned ompt_version) {
  ompt_set_callback_t set_callback = (ompt_set_callback_t)lookup("ompt_set_callback");
  start_counting();
  name_idle();
#define SET_ONE(number, event)                                                                     \
  if (ompt_callback_##event != ompt_callback_flush || with_flush())                                \
    set_callback(number, (ompt_callback_t)on_tr2_##number);
#define SET_PAIR(begin, end, event) SET_ONE(begin, event) SET_ONE(end, event)
  FOREACH_EVENT_OF_TR2(SET_ONE, SET_PAIR)
  set_callback(SHUTDOWN_IN_TR2, (ompt_callback_t)write_counts);
  return 1;
}

void *ompt_tool(void) { return (void *)ompt_initialize; }
