// Stands in for NVIDIA's driver (-DDRIVER: libcuda.so.1) and for CUPTI (else: libcupti.so.12 or .13).
//
// The reference runtime reports to the driver what its devices do, by stand_in_work. CUPTI writes records of that, as its own
// headers declare them, into the tool's buffers. CUPTI_STAND_IN lists how it behaves:
//   late             full buffers are completed on a thread of its own, and those that are not full only by a forced flush
//   split            calls of the API fill other buffers than devices do
//   devices_first    with split, buffers of devices are completed before those of the API
//   fill=BYTES       a buffer is full after these bytes
//   drop=N           every Nth record of a device finds no room
//   refuse=RESULT    cuptiActivityEnable answers this
//   version=N        cuptiGetVersion answers this
//   ordinals=REVERSE CUDA numbers devices in another order than OpenMP
//   beside           a kernel of no operation of OpenMP follows each kernel
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct work {
  uint32_t device;
  uint32_t data_op; // 0 for a kernel
  uint64_t bytes, begin_ns, end_ns;
};
typedef void (*work_hook)(const struct work *);

#ifdef DRIVER

static work_hook hook;

int cuDriverGetVersion(int *version) {
  const char *text = getenv("CUDA_STAND_IN_VERSION");
  *version = text ? atoi(text) : 13050;
  return 0;
}

void stand_in_hook(work_hook new_hook) { hook = new_hook; }

void stand_in_work(uint32_t device, uint32_t data_op, uint64_t bytes, uint64_t begin_ns, uint64_t end_ns) {
  struct work work = {device, data_op, bytes, begin_ns, end_ns};
  if (hook)
    hook(&work);
}

#else

#include <dlfcn.h>
#include <pthread.h>

#include <cupti_activity.h>
#include <cupti_version.h>

#if CUPTI_API_VERSION < 100
typedef CUpti_ActivityKernel9 Kernel;
typedef CUpti_ActivityMemcpy6 Memcpy;
typedef CUpti_ActivityMemset4 Memset;
#else
typedef CUpti_ActivityKernel13 Kernel;
typedef CUpti_ActivityMemcpy7 Memcpy;
typedef CUpti_ActivityMemset5 Memset;
#endif
typedef CUpti_ActivityMemory4 Memory;

// What its clock shows more than the time of day.
#define OFFSET 5000000000u
#define MAX_RECORDS 4096

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static char enabled[CUPTI_ACTIVITY_KIND_COUNT];
static uint32_t correlation;
static size_t dropped, device_records;

// Numbers that a thread has pushed.
static __thread uint64_t pushed[8][16];
static __thread int depth[8];

struct buffer {
  uint8_t *address;
  size_t size, used;
};
// Those that are being filled: by the API, by devices.
static struct buffer filling[2];

struct full {
  struct buffer buffer;
  struct full *next;
};

static const char *behaviour(const char *name) {
  const char *list = getenv("CUPTI_STAND_IN");
  const char *found = list ? strstr(list, name) : NULL;
  return found ? found + strlen(name) : NULL;
}

static size_t number(const char *name, size_t otherwise) {
  const char *text = behaviour(name);
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

// What is full is completed here, or later.
static struct full *late;
static pthread_t worker;
static int has_worker;

static void give_back(struct buffer buffer) {
  if (buffer.address)
    complete(NULL, 0, buffer.address, buffer.size, buffer.used);
}

static void *work_off(void *unused) {
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&mutex);
    struct full *first = late;
    if (first)
      late = first->next;
    else
      has_worker = 0;
    pthread_mutex_unlock(&mutex);
    if (!first)
      return NULL;
    give_back(first->buffer);
    free(first);
  }
}

static void is_full(struct buffer buffer) {
  if (!behaviour("late")) {
    give_back(buffer);
    return;
  }
  struct full *last = calloc(1, sizeof *last), **place = &late;
  last->buffer = buffer;
  pthread_mutex_lock(&mutex);
  while (*place)
    place = &(*place)->next;
  *place = last;
  int start = !has_worker;
  has_worker = 1;
  pthread_mutex_unlock(&mutex);
  if (start) {
    if (worker)
      pthread_join(worker, NULL);
    pthread_create(&worker, NULL, work_off, NULL);
  }
}

// Puts a record where records of this origin go. One thread at a time: `playing` is held.
static pthread_mutex_t playing = PTHREAD_MUTEX_INITIALIZER;
static void put(int of_device, const void *record, size_t size) {
  struct buffer *buffer = &filling[of_device && behaviour("split")];
  size_t room = number("fill=", SIZE_MAX);
  if (buffer->address && (buffer->used + size > buffer->size || buffer->used + size > room)) {
    struct buffer full = *buffer;
    memset(buffer, 0, sizeof *buffer);
    is_full(full);
  }
  size_t drop = number("drop=", 0);
  if (of_device && drop && ++device_records % drop == 0) {
    dropped++;
    return;
  }
  if (!buffer->address) {
    size_t most = 0;
    request(&buffer->address, &buffer->size, &most);
    if (((uintptr_t)buffer->address) % 8)
      abort();
  }
  if (!buffer->address || size > buffer->size) {
    dropped++;
    return;
  }
  memcpy(buffer->address + buffer->used, record, size);
  buffer->used += size;
}

// A call of the API begins: what is pushed on the thread belongs to it.
static uint32_t call(void) {
  uint32_t id = ++correlation;
  for (int kind = 0; kind < 8; kind++) {
    CUpti_ActivityExternalCorrelation record = {0};
    record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    record.externalKind = kind;
    record.correlationId = id;
    if (!depth[kind] || !enabled[record.kind] || !enabled[CUPTI_ACTIVITY_KIND_DRIVER])
      continue;
    record.externalId = pushed[kind][depth[kind] - 1];
    put(0, &record, sizeof record);
  }
  CUpti_ActivityAPI api = {0};
  api.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  api.correlationId = id;
  if (enabled[api.kind])
    put(0, &api, sizeof api);
  return id;
}

static uint32_t ordinal(uint32_t device) { return behaviour("ordinals=") ? 7 - device : device; }

static uint32_t stream(void) {
  static __thread uint32_t mine;
  static uint32_t newest = 6;
  return mine ? mine : (mine = ++newest);
}

static void kernel(const struct work *work, const char *name) {
  Kernel record;
  memset(&record, 0, sizeof record);
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.start = work->begin_ns + OFFSET;
  record.end = work->end_ns + OFFSET;
  record.deviceId = ordinal(work->device);
  record.contextId = 1;
  record.streamId = stream();
  record.gridX = 2;
  record.gridY = 3;
  record.gridZ = 1;
  record.name = name;
  record.correlationId = call();
  if (enabled[record.kind])
    put(1, &record, sizeof record);
}

static void worked(const struct work *work) {
  pthread_mutex_lock(&playing);
  Memcpy copy;
  Memory memory;
  memset(&copy, 0, sizeof copy);
  memset(&memory, 0, sizeof memory);
  switch (work->data_op) {
  case 0:
    kernel(work, "__omp_offloading_fd00_2a_work_l12");
    if (behaviour("beside")) {
      int depths[8];
      memcpy(depths, depth, sizeof depth);
      memset(depth, 0, sizeof depth);
      kernel(work, "_Z6besidei");
      memcpy(depth, depths, sizeof depth);
    }
    break;
  case 2: // to the device
  case 3: // from the device
    copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    copy.copyKind = work->data_op == 2 ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD : CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    copy.bytes = work->bytes;
    copy.start = work->begin_ns + OFFSET;
    copy.end = work->end_ns + OFFSET;
    copy.deviceId = ordinal(work->device);
    copy.streamId = stream();
    copy.correlationId = call();
    if (enabled[copy.kind])
      put(1, &copy, sizeof copy);
    break;
  case 1: // allocates
  case 4: // deletes
    memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    memory.memoryOperationType = work->data_op == 1 ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                                    : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
    memory.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    memory.address = 0x2000;
    memory.bytes = work->bytes;
    memory.timestamp = work->begin_ns + OFFSET;
    memory.deviceId = ordinal(work->device);
    memory.correlationId = call();
    if (enabled[memory.kind])
      put(1, &memory, sizeof memory);
    break;
  }
  pthread_mutex_unlock(&playing);
}

CUptiResult cuptiGetVersion(uint32_t *version) {
  *version = number("version=", CUPTI_API_VERSION);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *time) {
  *time = now() + OFFSET;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  size_t refusal = number("refuse=", 0);
  if (refusal)
    return refusal;
  void (*hook)(work_hook) = (void (*)(work_hook))dlsym(RTLD_DEFAULT, "stand_in_hook");
  if (!hook) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    hook = driver ? (void (*)(work_hook))dlsym(driver, "stand_in_hook") : NULL;
  }
  if (!hook)
    return CUPTI_ERROR_NOT_INITIALIZED;
  hook(worked);
  enabled[kind] = 1;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  enabled[kind] = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  if (behaviour("late") && !(flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED))
    return CUPTI_SUCCESS;
  pthread_mutex_lock(&playing);
  struct buffer both[2];
  memcpy(both, filling, sizeof both);
  memset(filling, 0, sizeof filling);
  CUpti_ActivityOverhead3 overhead;
  memset(&overhead, 0, sizeof overhead);
  overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  overhead.start = now();
  overhead.end = overhead.start + 12000;
  if (enabled[overhead.kind] && both[0].address && both[0].used + sizeof overhead <= both[0].size) {
    memcpy(both[0].address + both[0].used, &overhead, sizeof overhead);
    both[0].used += sizeof overhead;
  }
  pthread_mutex_unlock(&playing);
  int first = behaviour("devices_first") != NULL;
  give_back(both[first]);
  give_back(both[!first]);
  pthread_t last = 0;
  pthread_mutex_lock(&mutex);
  if (worker) {
    last = worker;
    worker = 0;
  }
  pthread_mutex_unlock(&mutex);
  if (last)
    pthread_join(last, NULL);
  return CUPTI_SUCCESS;
}

static size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
  case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
    return sizeof(CUpti_ActivityExternalCorrelation);
  case CUPTI_ACTIVITY_KIND_DRIVER:
    return sizeof(CUpti_ActivityAPI);
  case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    return sizeof(Kernel);
  case CUPTI_ACTIVITY_KIND_MEMCPY:
    return sizeof(Memcpy);
  case CUPTI_ACTIVITY_KIND_MEMSET:
    return sizeof(Memset);
  case CUPTI_ACTIVITY_KIND_MEMORY2:
    return sizeof(Memory);
  case CUPTI_ACTIVITY_KIND_OVERHEAD:
    return sizeof(CUpti_ActivityOverhead3);
  default:
    return 0;
  }
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record) {
  uint8_t *next = *record ? (uint8_t *)*record + size_of((*record)->kind) : buffer;
  if (next + sizeof(CUpti_Activity) > buffer + valid)
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity *)next;
  return size_of((*record)->kind) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream_id, size_t *number_dropped) {
  (void)context, (void)stream_id;
  *number_dropped = __atomic_exchange_n(&dropped, 0, __ATOMIC_RELAXED);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  if (kind >= 8 || depth[kind] == 16)
    return CUPTI_ERROR_INVALID_PARAMETER;
  pushed[kind][depth[kind]++] = id;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *last) {
  if (kind >= 8 || !depth[kind])
    return CUPTI_ERROR_QUEUE_EMPTY;
  uint64_t id = pushed[kind][--depth[kind]];
  if (last)
    *last = id;
  return CUPTI_SUCCESS;
}

#endif
