/* A tool that shares the runtime with another one, by LLVM's own multiplexer: it counts parallel
 * regions, and passes everything on to the tool that OMPTRACE_TEST_TOOL_LIBRARIES names. At the end
 * it prints `other tool: N regions, M threads`. */
#define OMPT_MULTIPLEX_TOOL_NAME "OMPTRACE_TEST"
#include <stdatomic.h>
#include <stdlib.h>

#include <ompt-multiplex.h>

static atomic_long regions, threads, wrong;

static void parallel_begin(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *parallel,
                           unsigned int requested, int flags, const void *code) {
  (void)task, (void)frame, (void)requested, (void)flags, (void)code;
  parallel->value = 0xabcd0000 + ++regions;
}

static void parallel_end(ompt_data_t *parallel, ompt_data_t *task, int flags, const void *code) {
  (void)task, (void)flags, (void)code;
  /* Each tool has its own data: the other one's ids do not get in here. */
  if (parallel->value >> 16 != 0xabcd)
    wrong++;
}

static void thread_begin(ompt_thread_t type, ompt_data_t *thread) {
  (void)type;
  thread->value = ++threads;
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *data) {
  (void)device, (void)data;
  ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
  set(ompt_callback_parallel_begin, (ompt_callback_t)parallel_begin);
  set(ompt_callback_parallel_end, (ompt_callback_t)parallel_end);
  set(ompt_callback_thread_begin, (ompt_callback_t)thread_begin);
  return 1;
}

static void finalize(ompt_data_t *data) {
  (void)data;
  printf("other tool: %ld regions, %ld threads, %ld wrong\n", regions, threads, wrong);
}

ompt_start_tool_result_t *ompt_start_tool(unsigned int version, const char *runtime) {
  (void)version, (void)runtime;
  static ompt_start_tool_result_t result = {initialize, finalize, {0}};
  return &result;
}
