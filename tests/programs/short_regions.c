/* Many short parallel regions. Argument: their number. */
#include <stdlib.h>

static volatile int sum;

int main(int count, char **texts) {
    int regions = count > 1 ? atoi(texts[1]) : 1000;
    for (int region = 0; region < regions; region++)
#pragma omp parallel num_threads(2)
        sum = region;
    return 0;
}
