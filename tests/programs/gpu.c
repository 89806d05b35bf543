/* What a graphics processor does, with counts in closed form and times by the processor's own clock.
 *
 *     gpu MODE [ROUNDS 10]
 *
 * Built by clang -fopenmp --offload-arch=ARCHITECTURE; needs a device. MODE is one of:
 *
 *     spin      kernels that run for 1 to 4 ms by the device's clock; prints `spun BEGIN END` of each
 *     many      ROUNDS kernels in a row on data that stays there
 *     threads   8 host threads, ROUNDS times: a transfer there, a kernel, a transfer back
 *     nowait    ROUNDS target tasks, run by hidden helper threads
 *     copies    ROUNDS transfers of 64 MiB to the device and back; prints `moved SECONDS` of each
 *     device    ROUNDS copies within the device, without a target region
 *     memory    ROUNDS allocations and deletions
 *     pause     ROUNDS kernels, ROUNDS in a pause, ROUNDS after it
 *     fork      kernels, a child that ends by exit, kernels
 *     flush     ROUNDS kernels and a flush, five times
 *     end       ROUNDS kernels, and _exit
 *     abort     ROUNDS kernels, and abort
 *     exit      exit while 4 threads offload
 *
 * Prints `kernels K to T from F`: what the program asked for. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __clang__
/* GCC 12 declares none of OpenMP's tool control. */
enum { omp_control_tool_start, omp_control_tool_pause, omp_control_tool_flush };
#define omp_control_tool(...) ((void)0)
#endif

enum { N = 1024 };

static int kernels, to, from;

static void asked(int k, int t, int f) {
#pragma omp atomic
  kernels += k;
#pragma omp atomic
  to += t;
#pragma omp atomic
  from += f;
}

static int fail(const char *what) {
  printf("wrong: %s\n", what);
  return EXIT_FAILURE;
}

/* Nanoseconds by the device's clock. */
#pragma omp declare target
static unsigned long long device_ns(void) {
#if defined __NVPTX__ || defined __nvptx__
  unsigned long long now;
  __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  return omp_get_wtime() * 1e9;
#endif
}
#pragma omp end declare target

static int spin(int rounds) {
  for (int i = 0; i < rounds; i++) {
    unsigned long long times[2] = {0, 0}, ns = 1000000ull * (1 + i % 4);
#pragma omp target map(from : times)
    {
      unsigned long long begin = device_ns(), now = begin;
      while (now < begin + ns)
        now = device_ns();
      times[0] = begin;
      times[1] = now;
    }
    asked(1, 0, 1);
    printf("spun %llu %llu\n", times[0], times[1]);
  }
  return 0;
}

static void add(int *numbers, int count) {
#pragma omp target teams distribute parallel for map(tofrom : numbers[0 : count])
  for (int i = 0; i < count; i++)
    numbers[i] += 1;
}

static int many(int rounds) {
  static int numbers[N];
  memset(numbers, 0, sizeof numbers);
#pragma omp target enter data map(to : numbers[0 : N])
  for (int i = 0; i < rounds; i++)
    add(numbers, N);
#pragma omp target exit data map(from : numbers[0 : N])
  asked(rounds, 1, 1);
  for (int i = 0; i < N; i++)
    if (numbers[i] != rounds)
      return fail("many");
  return 0;
}

static int threads(int rounds) {
  int wrong = 0;
#pragma omp parallel num_threads(8) reduction(+ : wrong)
  {
    int numbers[N] = {0};
    for (int i = 0; i < rounds; i++)
      add(numbers, N);
    for (int i = 0; i < N; i++)
      wrong += numbers[i] != rounds;
    asked(rounds, rounds, rounds);
  }
  return wrong ? fail("threads") : 0;
}

static int nowait(int rounds) {
  int(*numbers)[N] = calloc(rounds, sizeof *numbers);
#pragma omp parallel num_threads(4)
#pragma omp single
  for (int task = 0; task < rounds; task++) {
    int *mine = numbers[task];
#pragma omp target teams distribute parallel for map(tofrom : mine[0 : N]) nowait
    for (int i = 0; i < N; i++)
      mine[i] += 1;
  }
  asked(rounds, rounds, rounds);
  long sum = 0;
  for (int task = 0; task < rounds; task++)
    for (int i = 0; i < N; i++)
      sum += numbers[task][i];
  free(numbers);
  return sum != (long)rounds * N ? fail("nowait") : 0;
}

static int copies(int rounds) {
  size_t bytes = 64 << 20;
  char *data = malloc(bytes);
  memset(data, 1, bytes);
#pragma omp target enter data map(alloc : data[0 : bytes])
  for (int i = 0; i < rounds; i++) {
    double begin = omp_get_wtime();
#pragma omp target update to(data[0 : bytes])
    double there = omp_get_wtime();
#pragma omp target update from(data[0 : bytes])
    printf("moved %.6f %.6f\n", there - begin, omp_get_wtime() - there);
  }
#pragma omp target exit data map(delete : data[0 : bytes])
  asked(0, rounds, rounds);
  free(data);
  return 0;
}

static int within(int rounds) {
  int device = omp_get_default_device(), host = omp_get_initial_device();
  int numbers[N];
  for (int i = 0; i < N; i++)
    numbers[i] = i;
  void *a = omp_target_alloc(sizeof numbers, device), *b = omp_target_alloc(sizeof numbers, device);
  omp_target_memcpy(a, numbers, sizeof numbers, 0, 0, device, host);
  for (int i = 0; i < rounds; i++)
    omp_target_memcpy(i % 2 ? a : b, i % 2 ? b : a, sizeof numbers, 0, 0, device, device);
  memset(numbers, 0, sizeof numbers);
  omp_target_memcpy(numbers, a, sizeof numbers, 0, 0, host, device);
  omp_target_free(a, device);
  omp_target_free(b, device);
  asked(0, 1, 1);
  return numbers[N - 1] != N - 1 ? fail("device") : 0;
}

static int memory(int rounds) {
  for (int i = 0; i < rounds; i++)
    omp_target_free(omp_target_alloc(4096 << i % 12, omp_get_default_device()),
                    omp_get_default_device());
  return 0;
}

/* LLVM's runtime does not pass commands on to a tool before the first parallel region. */
static void first_region(void) {
#pragma omp parallel num_threads(2)
#pragma omp atomic
  kernels += 0;
}

static int paused(int rounds) {
  first_region();
  int wrong = many(rounds);
  omp_control_tool(omp_control_tool_pause, 0, NULL);
  wrong |= many(rounds);
  omp_control_tool(omp_control_tool_start, 0, NULL);
  return wrong | many(rounds);
}

static int flushed(int rounds) {
  first_region();
  int wrong = 0;
  for (int i = 0; i < 5; i++) {
    wrong |= many(rounds);
    omp_control_tool(omp_control_tool_flush, 0, NULL);
  }
  return wrong;
}

static int forked(int rounds) {
  int wrong = many(rounds), status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (!child)
    exit(7);
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
    return fail("the child's status");
  return wrong | many(rounds);
}

static void report(void) {
  printf("kernels %d to %d from %d\n", kernels, to, from);
  fflush(stdout);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "many";
  int rounds = argc > 2 ? atoi(argv[2]) : 10, status;
  if (!omp_get_num_devices())
    return fail("there is no device");
  if (!strcmp(mode, "exit")) {
#pragma omp parallel num_threads(5)
    {
      if (omp_get_thread_num()) {
        int numbers[N] = {0};
        for (;;)
          add(numbers, N);
      }
      usleep(300000);
      exit(3);
    }
  }
  static const struct {
    const char *name;
    int (*run)(int);
  } modes[] = {
      {"spin", spin},     {"many", many},   {"threads", threads}, {"nowait", nowait},
      {"copies", copies}, {"device", within}, {"memory", memory},   {"pause", paused},
      {"fork", forked},   {"flush", flushed}, {"end", many},        {"abort", many},
  };
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(mode, modes[i].name))
      continue;
    status = modes[i].run(rounds);
    report();
    if (!strcmp(mode, "end"))
      _exit(status);
    if (!strcmp(mode, "abort"))
      abort();
    return status;
  }
  return fail("no such mode");
}
