/* Data carried to a device of Intel's libomptarget and back: its OpenCL device on the host's cores.
 *
 *     offload_intel
 *
 * Linked to the libomptarget of Intel's OpenMP runtime, whose entry points it calls as code of Intel's
 * compiler does; its image has no kernel. Prints `checksum 256`. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { N = 256 };

/* The empty module in SPIR-V 1.0: magic, version, generator, bound, schema; the capabilities
 * Addresses and Kernel; memory model Physical64, OpenCL. */
static uint32_t module[] = {0x07230203, 0x00010000, 0, 1,          0, 0x00020011,
                            4,          0x00020011, 6, 0x0003000e, 2, 2};

/* LLVM's interface between compiled code and libomptarget (omptarget.h). */
static struct {
  void *begin, *end, *entries_begin, *entries_end;
} image = {module, module + sizeof module / sizeof *module, 0, 0};
static struct {
  int32_t images;
  void *image, *host_entries_begin, *host_entries_end;
} library = {1, &image, 0, 0};

void __tgt_register_requires(int64_t flags);
void __tgt_register_lib(void *library);
void __tgt_init_all_rtls(void);

int main(void) {
  int numbers[N];
  for (int i = 0; i < N; i++)
    numbers[i] = 1;
  __tgt_register_requires(1);
  __tgt_register_lib(&library);
  __tgt_init_all_rtls();
  if (omp_get_num_devices() != 1)
    return 2;
  int host = omp_get_initial_device();
  int *there = omp_target_alloc(sizeof numbers, 0);
  if (!there)
    return 3;
  omp_target_memcpy(there, numbers, sizeof numbers, 0, 0, 0, host);
  memset(numbers, 0, sizeof numbers);
  omp_target_memcpy(numbers, there, sizeof numbers, 0, 0, host, 0);
  omp_target_free(there, 0);
  long sum = 0;
  for (int i = 0; i < N; i++)
    sum += numbers[i];
  printf("checksum %ld\n", sum);
  return sum != N;
}
