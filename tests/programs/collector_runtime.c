/* An OpenMP runtime that has nothing but the Collector API of 2007, as a shared library with OpenUH's name: it knows FORK
 * and JOIN, and writes an error code for everything but ids.
 *
 *     omp_get_max_threads() answers 1; old_region() is a parallel region with one thread. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static void (*callbacks[3])(int event);
static int started, paused;
static uint64_t region;

enum { START, REGISTER, UNREGISTER, STATE, CURRENT_PRID, PARENT_PRID, STOP, PAUSE, RESUME };
enum { OK, ERROR, UNKNOWN, UNSUPPORTED, SEQUENCE_ERR };

static int answer(int request, char *mem, int *size) {
  int event = 0;
  *size = 0;
  if (request == START) {
    if (started)
      return SEQUENCE_ERR;
    started = 1;
    return OK;
  }
  if (!started)
    return SEQUENCE_ERR;
  switch (request) {
  case REGISTER:
    memcpy(&event, mem, sizeof event);
    if (event < 1 || event > 22)
      return UNKNOWN;
    if (event > 2)
      return UNSUPPORTED;
    memcpy(&callbacks[event], mem + sizeof event, sizeof callbacks[event]);
    return OK;
  case UNREGISTER:
    memcpy(&event, mem, sizeof event);
    if (event == 1 || event == 2)
      callbacks[event] = NULL;
    return OK;
  case STATE:
    event = region ? 2 : 6;
    memcpy(mem, &event, sizeof event);
    *size = sizeof event;
    return OK;
  case CURRENT_PRID:
    memcpy(mem, &region, sizeof region);
    *size = sizeof region;
    return -1;
  case PARENT_PRID:
    memset(mem, 0, sizeof region);
    *size = sizeof region;
    return -1;
  case PAUSE:
  case RESUME:
    paused = request == PAUSE;
    return OK;
  case STOP:
    started = 0;
    return OK;
  }
  return UNKNOWN;
}

int __omp_collector_api(void *arg) {
  for (char *entry = arg; *(int *)entry; entry += *(int *)entry) {
    int *header = (int *)entry;
    int code = answer(header[1], entry + 16, &header[3]);
    if (code >= 0)
      header[2] = code;
  }
  return 0;
}

int omp_get_max_threads(void) { return 1; }

static void tell(int event) {
  if (callbacks[event] && !paused)
    callbacks[event](event);
}

void old_region(void (*body)(void)) {
  static uint64_t last;
  region = ++last;
  tell(1);
  body();
  region = 0;
  tell(2);
}
