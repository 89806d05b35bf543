/* Names its phases by omptrace.h. */
#include "omptrace.h"
#include <stdio.h>

int main(void) {
    long sum = 0;
    for (int step = 0; step < 10; step++) {
        omptrace_frame_begin("time loop");
        omptrace_begin("solver", "assemble");
        for (int i = 0; i < 1000; i++) sum += i * step;
        omptrace_end("solver");
        omptrace_begin(NULL, "solve");
        #pragma omp parallel for reduction(+ : sum) num_threads(2)
        for (int i = 0; i < 1000; i++) sum += i ^ step;
        omptrace_end(NULL);
        omptrace_count("solver", "sum", sum);
        omptrace_frame_end("time loop");
    }
    omptrace_mark("solver", "converged");
    printf("%ld\n", sum);
    return 0;
}
