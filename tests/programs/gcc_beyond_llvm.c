// Constructs of GCC's code that LLVM's runtime cannot do: each ends with "right" on libgomp.
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(DETACH)
static int right(void) {
    int x = 0;
    #pragma omp parallel num_threads(2)
    #pragma omp single
    {
        omp_event_handle_t event;
        #pragma omp task detach(event) shared(x)
        x = 1;
        #pragma omp task firstprivate(event)
        {
            usleep(10000);
            omp_fulfill_event(event);
        }
    }
    return x == 1;
}
#elif defined(TARGET_TEAMS)
static int right(void) {
    static int runs[1000];
    #pragma omp target teams distribute parallel for num_teams(4) map(tofrom: runs)
    for (int i = 0; i < 1000; i++) runs[i]++;
    for (int i = 0; i < 1000; i++) {
        if (runs[i] != 1) return 0;
    }
    return 1;
}
#elif defined(TARGET_DEPEND)
static int right(void) {
    int x = 0, y = 0;
    #pragma omp parallel num_threads(2)
    #pragma omp single
    {
        #pragma omp task depend(out: x) shared(x)
        {
            usleep(100000);
            x = 42;
        }
        #pragma omp target depend(in: x) map(to: x) map(from: y)
        y = x;
        #pragma omp taskwait
    }
    return y == 42;
}
#elif defined(NUM_TEAMS)
static int right(void) {
    int teams = 0;
    omp_set_num_teams(3);
    #pragma omp teams reduction(+: teams)
    teams++;
    return teams == 3;
}
#elif defined(ALLOCATOR)
static int right(void) {
    omp_alloctrait_t traits[] = {{omp_atk_alignment, 64}};
    omp_allocator_handle_t mine = omp_init_allocator(omp_default_mem_space, 1, traits);
    int sum = 0, value = 1;
    #pragma omp parallel num_threads(2) firstprivate(value) allocate(mine: value) reduction(+: sum)
    sum += value;
    omp_destroy_allocator(mine);
    return sum == 2;
}
#elif defined(SCOPE)
static int right(void) {
    int sum = 0;
    #pragma omp parallel num_threads(4)
    #pragma omp scope reduction(task, +: sum)
    {
        #pragma omp task in_reduction(+: sum)
        sum += 1;
    }
    return sum == 4;
}
#elif defined(SCAN)
static int right(void) {
    int sums[100], sum = 0;
    #pragma omp parallel for reduction(inscan, +: sum)
    for (int i = 0; i < 100; i++) {
        sum += i;
        #pragma omp scan inclusive(sum)
        sums[i] = sum;
    }
    return sums[99] == 4950;
}
#elif defined(COUNTS_DOWN)
static int right(void) {
    long sum = 0;
    #pragma omp parallel num_threads(2)
    #pragma omp single
    #pragma omp taskloop
    for (long i = 1000; i > 0; i -= 3) {
        #pragma omp atomic
        sum += i;
    }
    return sum == 167167;
}
#endif

int main(void) {
    puts(right() ? "right" : "wrong");
    return 0;
}
