/* A program whose own functions take the place of the C library's, and use OpenMP: `-DHOW=0` a critical region, 1 a lock, 2 an atomic
 * operation by libgomp. `-DMALLOC` replaces those of memory, `-DOTHERS` others. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <omp.h>
#include <dlfcn.h>
static long count; static omp_lock_t lock; static int ready;
static long double big;
static void use(void) {
#if HOW == 0
#pragma omp critical(count)
  count++;
#elif HOW == 1
  if (ready) { omp_set_lock(&lock); count++; omp_unset_lock(&lock); }
#else
#pragma omp atomic
  big += 1;
#endif
}
#ifdef MALLOC
static char heap[64 << 20]; static size_t used;
void *malloc(size_t n) { use(); n = (n + 31) & ~15UL; size_t at = __atomic_fetch_add(&used, n, __ATOMIC_RELAXED); if (at + n > sizeof heap) return 0; *(size_t*)(heap+at) = n - 16; return heap + at + 16; }
void free(void *p) { use(); }
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n) { void *q = malloc(n); if (p && q) { size_t o = ((size_t*)p)[-2]; for (size_t i=0;i<(o<n?o:n);i++) ((char*)q)[i]=((char*)p)[i]; } return q; }
void *memalign(size_t a, size_t n) { char *p = malloc(n + a); p = (char*)(((uintptr_t)p + a - 1) & ~(a-1)); return p; }
void *aligned_alloc(size_t a, size_t n) { return memalign(a,n); }
int posix_memalign(void **p, size_t a, size_t n) { *p = memalign(a,n); return 0; }
#endif
#ifdef OTHERS
extern char **environ;
char *getenv(const char *name) { use(); size_t n = 0; while (name[n]) n++; for (char **e = environ; e && *e; e++) { size_t i=0; while (i<n && (*e)[i]==name[i]) i++; if (i==n && (*e)[n]=='=') return *e+n+1; } return 0; }
void *memcpy(void *restrict a, const void *restrict b, size_t n) { use(); volatile char *x=a; const volatile char *y=b; while (n--) *x++=*y++; return a; }
void *memmove(void *a, const void *b, size_t n) { use(); volatile char *x=a; const volatile char *y=b; if (x<y) while (n--) *x++=*y++; else while (n--) x[n]=y[n]; return a; }
void *memset(void *a, int c, size_t n) { use(); volatile char *x=a; while (n--) *x++=c; return a; }
size_t strlen(const char *s) { use(); size_t n=0; while (((volatile const char*)s)[n]) n++; return n; }
int memcmp(const void *a, const void *b, size_t n) { use(); const volatile unsigned char *x=a,*y=b; for (size_t i=0;i<n;i++) if (x[i]!=y[i]) return x[i]-y[i]; return 0; }
#include <sys/syscall.h>
ssize_t write(int f, const void *p, size_t n) { use(); return syscall(SYS_write, f, p, n); }
#include <sys/mman.h>
void *mmap(void *a, size_t n, int p, int f, int d, off_t o) { use(); return (void*)syscall(SYS_mmap, a, n, p, f, d, o); }
int munmap(void *a, size_t n) { use(); return syscall(SYS_munmap, a, n); }
#include <fcntl.h>
#include <stdarg.h>
int open(const char *p, int f, ...) { use(); va_list l; va_start(l,f); int m = va_arg(l,int); va_end(l); return syscall(SYS_openat, AT_FDCWD, p, f, m); }
int open64(const char *p, int f, ...) { use(); va_list l; va_start(l,f); int m = va_arg(l,int); va_end(l); return syscall(SYS_openat, AT_FDCWD, p, f, m); }
int close(int f) { use(); return syscall(SYS_close, f); }
#include <link.h>
int dl_iterate_phdr(int (*f)(struct dl_phdr_info *, size_t, void *), void *d) { use(); static int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *); if (!real) real = (int (*)(int (*)(struct dl_phdr_info *, size_t, void *), void *))dlsym(RTLD_NEXT, "dl_iterate_phdr"); return real(f, d); }
#endif
int main(void) {
  omp_init_lock(&lock); ready = 1;
  long n = 0;
  for (int i = 0; i < 5; i++) {
#pragma omp parallel num_threads(3) reduction(+:n)
  { void *p = malloc(100); n += p != 0; free(p); }
  }
#pragma omp parallel num_threads(2)
#pragma omp single
  for (int i = 0; i < 20; i++) {
#pragma omp task
    { char *volatile p = strdup("a text of some length"); free(p); }
  }
  printf("%ld %d\n", n, count + (long)big > 0); return 7;
}
