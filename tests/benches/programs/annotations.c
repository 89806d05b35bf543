/* Phases of the program's own, one after the other, with omptrace.h. One thread names them: each thread costs the same. */
#include "program.h"

#include "omptrace.h"

void work(long count) {
  for (long i = 0; i < count; i++) {
    omptrace_begin("bench", "phase");
    delay();
    omptrace_end("bench");
  }
}
