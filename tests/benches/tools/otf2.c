/* A tool that writes each event as one record of OTF2, through the library that Score-P and others
 * write with: time, callback and one argument. It records no more than the floor does. */
#define _GNU_SOURCE
#include <otf2/otf2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <otf2/OTF2_Pthread_Locks.h>

enum { CALLBACKS = 38, CHUNK = 1 << 20 };
enum { EMPTY_STRING };

static OTF2_Archive *archive;
static atomic_ulong locations;
static uint64_t begin_ns;
static __thread __attribute__((tls_model("initial-exec"))) OTF2_EvtWriter *writer;

static uint64_t now_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

static __attribute__((noinline)) void begin_location(void) {
  writer = OTF2_Archive_GetEvtWriter(archive, atomic_fetch_add(&locations, 1));
  if (!writer)
    abort();
}

static inline void record(uint64_t callback, uint64_t argument) {
  if (!writer)
    begin_location();
  OTF2_EvtWriter_ParameterUnsignedInt(writer, NULL, now_ns(CLOCK_MONOTONIC), callback, argument);
}

static OTF2_FlushType flush(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller,
                            bool is_final) {
  return OTF2_FLUSH;
}

static OTF2_TimeStamp flushed(void *data, OTF2_FileType type, OTF2_LocationRef location) {
  return now_ns(CLOCK_MONOTONIC);
}

static int begin_tool(void) {
  static OTF2_FlushCallbacks callbacks = {flush, flushed};
  const char *folder = getenv("BENCH_OUTPUT");
  archive = OTF2_Archive_Open(folder ? folder : ".", "trace", OTF2_FILEMODE_WRITE, CHUNK, CHUNK,
                              OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
  if (!archive || OTF2_Pthread_Archive_SetLockingCallbacks(archive, NULL) ||
      OTF2_Archive_SetFlushCallbacks(archive, &callbacks, NULL) ||
      OTF2_Archive_SetSerialCollectiveCallbacks(archive) || OTF2_Archive_OpenEvtFiles(archive))
    return 0;
  begin_ns = now_ns(CLOCK_MONOTONIC);
  return 1;
}

static void end_thread(void) {}

/* What a reader needs to know of the records. */
static void write_definitions(void) {
  OTF2_GlobalDefWriter *definitions = OTF2_Archive_GetGlobalDefWriter(archive);
  OTF2_GlobalDefWriter_WriteClockProperties(definitions, 1000000000, begin_ns,
                                            now_ns(CLOCK_MONOTONIC) - begin_ns,
                                            OTF2_UNDEFINED_TIMESTAMP);
  OTF2_GlobalDefWriter_WriteString(definitions, EMPTY_STRING, "");
  OTF2_GlobalDefWriter_WriteSystemTreeNode(definitions, 0, EMPTY_STRING, EMPTY_STRING,
                                           OTF2_UNDEFINED_SYSTEM_TREE_NODE);
  OTF2_GlobalDefWriter_WriteLocationGroup(definitions, 0, EMPTY_STRING,
                                          OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
                                          OTF2_UNDEFINED_LOCATION_GROUP);
  for (OTF2_ParameterRef callback = 0; callback < CALLBACKS; callback++)
    OTF2_GlobalDefWriter_WriteParameter(definitions, callback, EMPTY_STRING,
                                        OTF2_PARAMETER_TYPE_UINT64);
  for (OTF2_LocationRef location = 0; location < locations; location++) {
    uint64_t events = 0;
    OTF2_EvtWriter *of = OTF2_Archive_GetEvtWriter(archive, location);
    OTF2_EvtWriter_GetNumberOfEvents(of, &events);
    OTF2_GlobalDefWriter_WriteLocation(definitions, location, EMPTY_STRING,
                                       OTF2_LOCATION_TYPE_CPU_THREAD, events, 0);
    OTF2_Archive_CloseEvtWriter(archive, of);
  }
  OTF2_Archive_CloseGlobalDefWriter(archive, definitions);
}

static void end_tool(void) {
  write_definitions();
  OTF2_Archive_CloseEvtFiles(archive);
  OTF2_Archive_Close(archive);
}

#include "callbacks.h"
