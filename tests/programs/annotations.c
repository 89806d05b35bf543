/* Says at random what it does, by NVTX, ITT and Kokkos Tools, on random threads, and prints what it said: the truth for the trace.
 *
 *   annotations SEED THREADS STEPS [WHAT]
 *
 * The interfaces are declared here as their headers have them, so that neither headers nor libraries of theirs are needed. Each line of the
 * output is of one range: interface, domain, name, how often it ended, and the sum of payloads. WHAT:
 *   pops      more ends than begins
 *   open      threads end inside ranges
 *   fork      a child says something, too
 *   cost N    N pairs of the same range, and the time that one takes
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- NVTX 3, as the header's inline part loads it ---- */

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
} attributes;

enum { CORE = 1, CORE2 = 5, SLOTS = 16 };
static void *core[SLOTS], *core2[SLOTS];
static void **core_slots[SLOTS], **core2_slots[SLOTS];

static int module_table(int module, void ****out, unsigned *count) {
    if (module != CORE && module != CORE2) return 0;
    *out = module == CORE ? core_slots : core2_slots;
    *count = SLOTS;
    return 1;
}
static void set_version(uint32_t version) { (void)version; }
static const struct { size_t size; int (*table)(int, void ****, unsigned *); } callbacks = {16, module_table};
static const struct { size_t size; uint32_t version, reserved; void (*set)(uint32_t); } version = {24, 3, 0, set_version};
static const void *export_table(uint32_t id) { return id == 1 ? (const void *)&callbacks : id == 3 ? (const void *)&version : NULL; }

static void nvtx_load(void) {
    for (int i = 1; i < SLOTS; i++) core_slots[i] = &core[i], core2_slots[i] = &core2[i];
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*initialize)(const void *(*)(uint32_t)) = library ? (int (*)(const void *(*)(uint32_t)))dlsym(library, "InitializeInjectionNvtx2") : NULL;
    if (initialize && initialize(export_table) != 1) memset(core, 0, sizeof core), memset(core2, 0, sizeof core2);
}
static void *nvtx_domain(const char *name) { return core2[12] ? ((void *(*)(const char *))core2[12])(name) : NULL; }
static void *nvtx_string(void *domain, const char *text) { return core2[10] ? ((void *(*)(void *, const char *))core2[10])(domain, text) : NULL; }
static int nvtx_push(void *domain, const attributes *e) { return core2[4] ? ((int (*)(void *, const attributes *))core2[4])(domain, e) : -2; }
static int nvtx_pop(void *domain) { return core2[5] ? ((int (*)(void *))core2[5])(domain) : -2; }
static uint64_t nvtx_start(void *domain, const attributes *e) { return core2[2] ? ((uint64_t(*)(void *, const attributes *))core2[2])(domain, e) : 0; }
static void nvtx_end(void *domain, uint64_t id) { if (core2[3]) ((void (*)(void *, uint64_t))core2[3])(domain, id); }
static int nvtx_push_text(const char *text) { return core[9] ? ((int (*)(const char *))core[9])(text) : -2; }
static int nvtx_pop_text(void) { return core[11] ? ((int (*)(void))core[11])() : -2; }

/* ---- ITT, as the static part loads it ---- */

typedef struct { volatile int flags; const char *name; void *wide; int extra; void *more, *next; } itt_domain;
typedef struct { uint64_t d[3]; } itt_id;
static itt_domain *(*itt_domain_create)(const char *);
static void *(*itt_string_create)(const char *);
static void (*itt_task_begin)(const itt_domain *, itt_id, itt_id, void *);
static void (*itt_task_end)(const itt_domain *);
static void (*itt_frame_begin)(const itt_domain *, itt_id *);
static void (*itt_frame_end)(const itt_domain *, itt_id *);
static struct { const char *name; void **function; void *init, *null; int group; } itt_list[] = {
    {"__itt_domain_create", (void **)&itt_domain_create, 0, 0, 0}, {"__itt_string_handle_create", (void **)&itt_string_create, 0, 0, 0},
    {"__itt_task_begin", (void **)&itt_task_begin, 0, 0, 0}, {"__itt_task_end", (void **)&itt_task_end, 0, 0, 0},
    {"__itt_frame_begin_v3", (void **)&itt_frame_begin, 0, 0, 0}, {"__itt_frame_end_v3", (void **)&itt_frame_end, 0, 0, 0}, {0, 0, 0, 0, 0}};
static struct {
    unsigned char magic[8];
    uint64_t version[3];
    int64_t initialized, mutex_initialized, counter;
    uint64_t mutex[5];
    void *library, *error, *path, *list, *next;
} itt_global = {{0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30}, {3, 0, 20250807}, 0, 0, 0, {0}, 0, 0, 0, itt_list, 0};
static void itt_load(void) {
    const char *path = getenv("INTEL_LIBITTNOTIFY64");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    void (*initialize)(void *, int) = library ? (void (*)(void *, int))dlsym(library, "__itt_api_init") : NULL;
    if (initialize) initialize(&itt_global, 0);
}

/* ---- Kokkos Tools, as Kokkos::initialize loads it ---- */

static void (*kokkos_begin)(const char *, uint32_t, uint64_t *);
static void (*kokkos_end)(uint64_t);
static void kokkos_load(void) {
    const char *path = getenv("KOKKOS_TOOLS_LIBS");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!library) return;
    kokkos_begin = (void (*)(const char *, uint32_t, uint64_t *))dlsym(library, "kokkosp_begin_parallel_for");
    kokkos_end = (void (*)(uint64_t))dlsym(library, "kokkosp_end_parallel_for");
}

/* ---- The program ---- */

enum { NVTX, NVTX_TEXT, NVTX_PROCESS, ITT, KOKKOS, WAYS, DOMAINS = 2, NAMES = 6, MOST_OPEN = 12 };
static const char *const ways[WAYS] = {"nvtx", "text", "process", "itt", "kokkos"};
static const char *const domains[DOMAINS] = {"solver", "io"};
static const char *const names[NAMES] = {"step", "axpy", "dot", "halo exchange", "write", "a long name of something that happens"};
static void *nvtx_domains[DOMAINS], *nvtx_names[DOMAINS][NAMES], *itt_names[NAMES];
static itt_domain *itt_domains[DOMAINS];
static long ended[WAYS][DOMAINS][NAMES], payloads[WAYS][DOMAINS][NAMES];
static pthread_mutex_t truth = PTHREAD_MUTEX_INITIALIZER;
static int pops, stays_open;

typedef struct { int way, domain, name; uint64_t id; long payload; } range;
typedef struct { uint64_t state; int steps; } worker;

static unsigned pick(worker *w, unsigned below) {
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(w->state >> 33) % below;
}

static void begin(worker *w, range *r) {
    *r = (range){pick(w, WAYS), pick(w, DOMAINS), pick(w, NAMES), 0, pick(w, 1000)};
    attributes e = {3, sizeof e, 0, 0, 0, 2, 0, (uint64_t)r->payload, 3, nvtx_names[r->domain][r->name]};
    switch (r->way) {
        case NVTX: nvtx_push(nvtx_domains[r->domain], &e); break;
        case NVTX_TEXT: { char text[64]; strcpy(text, names[r->name]); nvtx_push_text(text); memset(text, 'x', sizeof text); r->domain = 0; r->payload = 0; break; }
        case NVTX_PROCESS: r->id = nvtx_start(nvtx_domains[r->domain], &e); r->payload = 0; break;
        case ITT: if (itt_task_begin && itt_domains[r->domain]->flags) itt_task_begin(itt_domains[r->domain], (itt_id){{0}}, (itt_id){{0}}, itt_names[r->name]); r->payload = 0; break;
        case KOKKOS: if (kokkos_begin) kokkos_begin(names[r->name], 0x1000001, &r->id); r->domain = 0; r->payload = 0; break;
    }
}

static void end(const range *r) {
    switch (r->way) {
        case NVTX: nvtx_pop(nvtx_domains[r->domain]); break;
        case NVTX_TEXT: nvtx_pop_text(); break;
        case NVTX_PROCESS: nvtx_end(nvtx_domains[r->domain], r->id); break;
        case ITT: if (itt_task_end && itt_domains[r->domain]->flags) itt_task_end(itt_domains[r->domain]); break;
        case KOKKOS: if (kokkos_end) kokkos_end(r->id); break;
    }
    pthread_mutex_lock(&truth);
    ended[r->way][r->domain][r->name]++;
    payloads[r->way][r->domain][r->name] += r->payload;
    pthread_mutex_unlock(&truth);
}

/* The newest of those that must end before the others of the same stack: the domains of an interface have one each. */
static int may_end(const range *open, int count, int which) {
    for (int i = which + 1; i < count; i++)
        if (open[which].way != NVTX_PROCESS && open[i].way == open[which].way && open[i].domain == open[which].domain) return 0;
    return 1;
}

static void *work(void *argument) {
    worker *w = argument;
    range open[MOST_OPEN];
    int count = 0;
    for (int step = 0; step < w->steps; step++) {
        int begins = count == 0 || (count < MOST_OPEN && pick(w, 2));
        if (begins) {
            begin(w, &open[count++]);
        } else {
            int which = (int)pick(w, (unsigned)count);
            while (!may_end(open, count, which)) which++;
            end(&open[which]);
            memmove(&open[which], &open[which + 1], (size_t)(--count - which) * sizeof *open);
        }
        if (pops && !count) nvtx_pop(nvtx_domains[0]), nvtx_pop_text();
    }
    while (!stays_open && count) end(&open[--count]);
    return NULL;
}

static void cost(long pairs) {
    attributes e = {3, sizeof e, 0, 0, 0, 0, 0, 0, 3, nvtx_names[0][0]};
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (long i = 0; i < pairs; i++) nvtx_push(nvtx_domains[0], &e), nvtx_pop(nvtx_domains[0]);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    fprintf(stderr, "%.1f ns a pair\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)pairs);
}

int main(int argc, char **argv) {
    unsigned seed = (unsigned)(argc > 1 ? atoi(argv[1]) : 1);
    int threads = argc > 2 ? atoi(argv[2]) : 2, steps = argc > 3 ? atoi(argv[3]) : 100;
    const char *what = argc > 4 ? argv[4] : "";
    pops = !strcmp(what, "pops"), stays_open = !strcmp(what, "open");
    nvtx_load(), itt_load(), kokkos_load();
    for (int d = 0; d < DOMAINS; d++) {
        nvtx_domains[d] = nvtx_domain(domains[d]);
        itt_domains[d] = itt_domain_create ? itt_domain_create(domains[d]) : NULL;
        for (int n = 0; n < NAMES; n++) nvtx_names[d][n] = nvtx_string(nvtx_domains[d], names[n]);
    }
    for (int n = 0; n < NAMES; n++) itt_names[n] = itt_string_create ? itt_string_create(names[n]) : NULL;
    if (!strcmp(what, "cost")) return cost(argc > 5 ? atol(argv[5]) : 1000000), 0;
    if (!strcmp(what, "fork")) {
        worker parent = {seed, 1}, child = {seed + 1, 10};
        range r;
        begin(&parent, &r);
        pid_t pid = fork();
        if (pid == 0) work(&child), exit(0);
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) < 0 || status) return 1;
        end(&r);
    }
    pthread_t ids[64];
    worker workers[64];
    for (int t = 0; t < threads && t < 64; t++) {
        workers[t] = (worker){seed * 1000u + (unsigned)t, steps};
        if (pthread_create(&ids[t], NULL, work, &workers[t])) return 1;
    }
    for (int t = 0; t < threads && t < 64; t++) pthread_join(ids[t], NULL);
    for (int w = 0; w < WAYS; w++)
        for (int d = 0; d < DOMAINS; d++)
            for (int n = 0; n < NAMES; n++)
                if (ended[w][d][n]) printf("%s %s %ld %ld %s\n", ways[w], domains[d], ended[w][d][n], payloads[w][d][n], names[n]);
    return 0;
}
