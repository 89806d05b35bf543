/* Plays a plugin of libgomp (GCC's libgomp-plugin.h): NVIDIA's devices, two of them, whose memory is the host's. They run no code.
 * Built with -DNAME, -DDEVICES for another plugin. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#ifndef NAME
#define NAME "nvptx"
#define DEVICES 2
#endif

enum { GOMP_VERSION = 1, CAP_OPENMP_400 = 4, TARGET_NVIDIA_PTX = 5 };

unsigned GOMP_OFFLOAD_version(void) { return GOMP_VERSION; }
const char *GOMP_OFFLOAD_get_name(void) { return NAME; }
unsigned GOMP_OFFLOAD_get_caps(void) { return CAP_OPENMP_400; }
int GOMP_OFFLOAD_get_type(void) { return TARGET_NVIDIA_PTX; }
int GOMP_OFFLOAD_get_num_devices(unsigned requires) { return (void)requires, DEVICES; }
bool GOMP_OFFLOAD_init_device(int device) { return (void)device, true; }
bool GOMP_OFFLOAD_fini_device(int device) { return (void)device, true; }
int GOMP_OFFLOAD_load_image(int device, unsigned version, const void *image, void **table) {
  return (void)device, (void)version, (void)image, (void)table, 0;
}
bool GOMP_OFFLOAD_unload_image(int device, unsigned version, const void *image) {
  return (void)device, (void)version, (void)image, true;
}
void *GOMP_OFFLOAD_alloc(int device, size_t bytes) { return (void)device, malloc(bytes); }
bool GOMP_OFFLOAD_free(int device, void *memory) { return (void)device, free(memory), true; }
bool GOMP_OFFLOAD_dev2host(int device, void *to, const void *from, size_t bytes) {
  return (void)device, memcpy(to, from, bytes), true;
}
bool GOMP_OFFLOAD_host2dev(int device, void *to, const void *from, size_t bytes) {
  return (void)device, memcpy(to, from, bytes), true;
}
bool GOMP_OFFLOAD_dev2dev(int device, void *to, const void *from, size_t bytes) {
  return (void)device, memcpy(to, from, bytes), true;
}
void GOMP_OFFLOAD_run(int device, void *function, void *data, void **arguments) {
  (void)device, (void)function, (void)data, (void)arguments;
  abort();
}
