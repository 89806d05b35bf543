/* A tool that hands each event to LTTng-UST: callback and one argument; LTTng adds the time. Its
 * daemon, a process of its own, writes the files. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_provider.h"

static inline void record(uint64_t callback, uint64_t argument) {
  lttng_ust_tracepoint(omptrace_bench, event, callback, argument);
}

static int begin_tool(void) { return 1; }
static void end_thread(void) {}
static void end_tool(void) {}

#include "callbacks.h"
