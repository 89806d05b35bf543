/* Time steps inside an outer range, with ranges of two domains, counters and marks: annotated_steps STEPS. */
#include "omptrace.h"
#include <stdio.h>
#include <stdlib.h>

static long work(int count) {
    long sum = 0;
    #pragma omp parallel for reduction(+ : sum) num_threads(2)
    for (int i = 0; i < count; i++) sum += i ^ count;
    return sum;
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    long sum = work(10);
    omptrace_begin("solver", "main loop");
    for (int step = 0; step < steps; step++) {
        char name[32];
        snprintf(name, sizeof name, "step %d", step);
        omptrace_frame_begin("time loop");
        omptrace_begin("solver", name);
        if (step % 3 == 0) {
            omptrace_begin("io", "write");
            sum += work(20);
            omptrace_count("io", "bytes", sum);
            omptrace_end("io");
        }
        omptrace_begin("solver", "assemble");
        sum += work(100);
        omptrace_end("solver");
        if (step % 50 == 7) {
            /* The ranges overlap: one of them is cut. */
            omptrace_begin("solver", "solve");
            omptrace_begin("io", "log");
            sum += work(30);
            omptrace_end("solver");
            sum += work(40);
            omptrace_end("io");
            omptrace_mark("solver", "converged");
        }
        omptrace_end("solver");
        if (step % 4 < 3) sum += work(50);
        omptrace_frame_end("time loop");
        /* Frames that overlap have tracks of their own. */
        if (step % 20 == 3) omptrace_frame_begin("checkpoint");
        if (step % 20 == 6) omptrace_frame_end("checkpoint");
        if (step % 20 == 5) omptrace_frame_begin("checkpoint");
        if (step % 20 == 8) omptrace_frame_end("checkpoint");
    }
    omptrace_end("solver");
    sum += work(10);
    printf("%ld\n", sum);
    return 0;
}
