// Calls the locks of OpenMP 2.5, as code of GCC before 4.4 does. A nestable lock has eight bytes; what lies behind must
// stay as it is.
#include <stdio.h>
#include <string.h>

#define OLD(name) __asm__(".symver " #name "," #name "@OMP_1.0")
OLD(omp_init_lock);
OLD(omp_set_lock);
OLD(omp_test_lock);
OLD(omp_unset_lock);
OLD(omp_destroy_lock);
OLD(omp_init_nest_lock);
OLD(omp_set_nest_lock);
OLD(omp_test_nest_lock);
OLD(omp_unset_nest_lock);
OLD(omp_destroy_nest_lock);
void omp_init_lock(void *), omp_set_lock(void *), omp_unset_lock(void *), omp_destroy_lock(void *);
void omp_init_nest_lock(void *), omp_set_nest_lock(void *), omp_unset_nest_lock(void *), omp_destroy_nest_lock(void *);
int omp_test_lock(void *), omp_test_nest_lock(void *);

static struct {
    int lock;
    int behind_lock;
    int nest_lock[2];
    char behind_nest_lock[16];
} all;

int main(void) {
    memset(&all, 0x5a, sizeof all);
    omp_init_lock(&all.lock);
    omp_init_nest_lock(all.nest_lock);
    // One sum per lock: neither lock keeps the other's holder away.
    int sum = 0, nested = 0, depth = 0;
    #pragma omp parallel num_threads(2)
    for (int i = 0; i < 20; i++) {
        omp_set_lock(&all.lock);
        sum++;
        omp_unset_lock(&all.lock);
        omp_set_nest_lock(all.nest_lock);
        omp_set_nest_lock(all.nest_lock);
        nested += 2;
        omp_unset_nest_lock(all.nest_lock);
        omp_unset_nest_lock(all.nest_lock);
    }
    int got = omp_test_lock(&all.lock);
    omp_unset_lock(&all.lock);
    depth += omp_test_nest_lock(all.nest_lock);
    depth += omp_test_nest_lock(all.nest_lock);
    omp_unset_nest_lock(all.nest_lock);
    omp_unset_nest_lock(all.nest_lock);
    omp_destroy_lock(&all.lock);
    omp_destroy_nest_lock(all.nest_lock);
    int kept = all.behind_lock == 0x5a5a5a5a;
    for (unsigned i = 0; i < sizeof all.behind_nest_lock; i++) kept &= all.behind_nest_lock[i] == 0x5a;
    printf("sum %d, got %d, depth %d, kept %d\n", sum + nested, got, depth, kept);
    return 0;
}
