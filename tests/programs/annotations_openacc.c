/* Three compute constructs of OpenACC, on the host. */
#include <stdio.h>

int main(void) {
    int a[10] = {0};
    #pragma acc data copy(a)
    for (int step = 0; step < 3; step++) {
        #pragma acc parallel loop
        for (int i = 0; i < 10; i++) a[i] += step == 1 ? 0 : 1;
    }
    int sum = 0;
    for (int i = 0; i < 10; i++) sum += a[i];
    printf("%d\n", sum);
    return 0;
}
