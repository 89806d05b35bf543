/* The one tracepoint of lttng.c, declared as LTTng-UST wants it. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER omptrace_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_provider.h"

#if !defined(LTTNG_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(omptrace_bench, event,
                           LTTNG_UST_TP_ARGS(uint8_t, callback, uint64_t, argument),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint8_t, callback, callback)
                                                   lttng_ust_field_integer(uint64_t, argument,
                                                                           argument)))

#endif

#include <lttng/tracepoint-event.h>
