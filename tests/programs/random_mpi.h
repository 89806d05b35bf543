/* Steps of random MPI programs (tests/src/mpi_generator.rs), which count what they do.
 *
 * All members of a communicator make each step together, with the same parameters. A step is a copy of its function, so that its
 * calls have code addresses of their own. Messages of a step have a tag of their own. Where a receive takes any tag, all meet behind
 * the step, so that no message of a later one can come in between. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP static inline __attribute__((always_inline)) void
#define MAX_RANKS 8
#define MAX_BYTES (1 << 18)

/* --- What the program counts. */

static _Atomic long sends, sent_bytes, receives, received_bytes, collectives, communicators, fruitless;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  const char *name;
  long count;
} functions[128];

static void count(const char *name) {
  pthread_mutex_lock(&lock);
  int i = 0;
  while (functions[i].name && strcmp(functions[i].name, name)) i++;
  functions[i].name = name;
  functions[i].count++;
  pthread_mutex_unlock(&lock);
}

/* A call that is recorded. */
#define CALL(name, ...) (count(#name), name(__VA_ARGS__))
/* One that is recorded where it has found something. */
#define TRY(name, flag, ...) (name(__VA_ARGS__), (flag) ? count(#name) : (void)fruitless++)

static void sent(int to, long bytes) {
  if (to == MPI_PROC_NULL) return;
  sends++;
  sent_bytes += bytes;
}

static void received(int from, long bytes) {
  if (from == MPI_PROC_NULL) return;
  receives++;
  received_bytes += bytes;
}

static void print(int rank) {
  char text[8192];
  int length = snprintf(text, sizeof text,
                        "{\"rank\":%d,\"sends\":%ld,\"sent_bytes\":%ld,\"receives\":%ld,\"received_bytes\":%ld,"
                        "\"collectives\":%ld,\"communicators\":%ld,\"fruitless\":%ld,\"calls\":{\"MPI_Finalize\":1",
                        rank, sends, sent_bytes, receives, received_bytes, collectives, communicators, fruitless);
  for (int i = 0; functions[i].name; i++)
    length += snprintf(text + length, sizeof text - length, ",\"%s\":%ld", functions[i].name, functions[i].count);
  snprintf(text + length, sizeof text - length, "}}\n");
  fputs(text, stdout);
  fflush(stdout);
}

/* --- Helpers. */

typedef struct {
  MPI_Datatype type;
  int bytes;
} Type;

/* The buffers of a thread. */
static __thread char *out, *in;

static void make_buffers(void) {
  out = calloc(1, MAX_BYTES * 2);
  in = calloc(MAX_RANKS + 1, MAX_BYTES * 2);
}

static char *in_of(int place) { return in + (size_t)(place % (MAX_RANKS + 1)) * MAX_BYTES; }

/* A number that all ranks have the same of. */
static unsigned mix(unsigned a, unsigned b, unsigned c) {
  unsigned x = a * 0x9e3779b9u + b * 0x85ebca6bu + c * 0xc2b2ae35u;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  x *= 0x297a2d39u;
  return x ^ x >> 15;
}

static int rank_in(MPI_Comm c) {
  int me;
  MPI_Comm_rank(c, &me);
  return me;
}

static int size_of(MPI_Comm c) {
  int n;
  MPI_Comm_size(c, &n);
  return n;
}

enum { WAITALL, WAITANY, WAITSOME, WAITS, TESTALL, TESTANY, TESTSOME, TESTS, COMPLETIONS };

/* Completes all requests. Statuses are ignored, or not. Tests that succeed without any request find nothing. */
STEP complete(int how, int number, MPI_Request *requests, int with_status) {
  int is_one = 0;
  for (int i = 0; i < number; i++) is_one |= requests[i] != MPI_REQUEST_NULL;
  MPI_Status one, all[64];
  MPI_Status *status = with_status ? &one : MPI_STATUS_IGNORE, *statuses = with_status ? all : MPI_STATUSES_IGNORE;
  int index, flag, some, places[64];
  switch (how % COMPLETIONS) {
  case WAITALL: CALL(MPI_Waitall, number, requests, statuses); break;
  case WAITANY:
    do CALL(MPI_Waitany, number, requests, &index, status);
    while (index != MPI_UNDEFINED);
    break;
  case WAITSOME:
    do CALL(MPI_Waitsome, number, requests, &some, places, statuses);
    while (some != MPI_UNDEFINED);
    break;
  case WAITS:
    for (int i = number - 1; i >= 0; i--) CALL(MPI_Wait, &requests[i], status);
    break;
  case TESTALL:
    do TRY(MPI_Testall, flag && is_one, number, requests, &flag, statuses);
    while (!flag);
    break;
  case TESTANY:
    do TRY(MPI_Testany, flag && index != MPI_UNDEFINED, number, requests, &index, &flag, status);
    while (!flag || index != MPI_UNDEFINED);
    break;
  case TESTSOME:
    do TRY(MPI_Testsome, some > 0, number, requests, &some, places, statuses);
    while (some != MPI_UNDEFINED);
    break;
  case TESTS:
    for (int i = 0; i < number; i++) {
      is_one = requests[i] != MPI_REQUEST_NULL;
      do TRY(MPI_Test, flag && is_one, &requests[i], &flag, status);
      while (!flag);
    }
    break;
  }
}

STEP barrier(MPI_Comm c) {
  CALL(MPI_Barrier, c);
  collectives++;
}

/* --- Messages. */

enum { ANY_SOURCE = 1, ANY_TAG = 2, WITH_STATUS = 4 };

/* Each rank sends to one neighbour and receives from the other; where `open` is set, the ring is a chain. */
STEP ring(MPI_Comm c, int shift, int elements, Type type, int tag, int how, int wild, int open, int completion) {
  int me = rank_in(c), n = size_of(c), flag;
  shift %= n;
  int to = (me + shift) % n, from = (me + n - shift) % n;
  if (open && shift) {
    if (me + shift >= n) to = MPI_PROC_NULL;
    if (me - shift < 0) from = MPI_PROC_NULL;
  }
  /* No status says that it was nobody, where anybody may be. */
  int source = wild & ANY_SOURCE && from != MPI_PROC_NULL ? MPI_ANY_SOURCE : from;
  int as = wild & ANY_TAG ? MPI_ANY_TAG : tag;
  MPI_Status own, *status = wild & WITH_STATUS ? &own : MPI_STATUS_IGNORE;
  MPI_Request requests[2];
  MPI_Message message;
  int most = elements + 3;
  long bytes = (long)elements * type.bytes;
  sent(to, bytes);
  received(from, bytes);
  switch (how % 12) {
  case 0:
    CALL(MPI_Sendrecv, out, elements, type.type, to, tag, in, most, type.type, source, as, c, status);
    break;
  case 1:
    CALL(MPI_Irecv, in, most, type.type, source, as, c, &requests[0]);
    CALL(MPI_Send, out, elements, type.type, to, tag, c);
    complete(completion, 1, requests, wild & WITH_STATUS);
    break;
  case 2:
    CALL(MPI_Isend, out, elements, type.type, to, tag, c, &requests[0]);
    CALL(MPI_Recv, in, most, type.type, source, as, c, status);
    complete(completion, 1, requests, wild & WITH_STATUS);
    break;
  case 3: CALL(MPI_Sendrecv_replace, out, elements, type.type, to, tag, source, as, c, status); break;
  case 4:
    CALL(MPI_Irecv, in, most, type.type, source, as, c, &requests[1]);
    CALL(MPI_Issend, out, elements, type.type, to, tag, c, &requests[0]);
    complete(completion, 2, requests, wild & WITH_STATUS);
    break;
  case 5:
    CALL(MPI_Isend, out, elements, type.type, to, tag, c, &requests[0]);
    CALL(MPI_Probe, source, as, c, &own);
    CALL(MPI_Recv, in, most, type.type, own.MPI_SOURCE, own.MPI_TAG, c, status);
    complete(completion, 1, requests, 0);
    break;
  case 6:
    CALL(MPI_Isend, out, elements, type.type, to, tag, c, &requests[0]);
    CALL(MPI_Mprobe, source, as, c, &message, &own);
    CALL(MPI_Mrecv, in, most, type.type, &message, status);
    complete(completion, 1, requests, 0);
    break;
  case 7:
    CALL(MPI_Isend, out, elements, type.type, to, tag, c, &requests[0]);
    do TRY(MPI_Iprobe, flag, source, as, c, &flag, &own);
    while (!flag);
    CALL(MPI_Recv, in, most, type.type, own.MPI_SOURCE, own.MPI_TAG, c, status);
    complete(completion, 1, requests, 0);
    break;
  case 8:
    CALL(MPI_Isend, out, elements, type.type, to, tag, c, &requests[0]);
    do TRY(MPI_Improbe, flag, source, as, c, &flag, &message, MPI_STATUS_IGNORE);
    while (!flag);
    CALL(MPI_Imrecv, in, most, type.type, &message, &requests[1]);
    complete(completion, 2, requests, wild & WITH_STATUS);
    break;
  case 9:
    CALL(MPI_Bsend, out, elements, type.type, to, tag, c);
    CALL(MPI_Recv, in, most, type.type, source, as, c, status);
    break;
  case 10:
    CALL(MPI_Irecv, in, most, type.type, source, as, c, &requests[0]);
    barrier(c);
    CALL(MPI_Rsend, out, elements, type.type, to, tag, c);
    complete(completion, 1, requests, wild & WITH_STATUS);
    break;
  case 11:
    /* Nobody waits for the send. */
    CALL(MPI_Isend, out, elements, type.type, to, tag, c, &requests[0]);
    CALL(MPI_Request_free, &requests[0]);
    CALL(MPI_Recv, in, most, type.type, source, as, c, status);
    barrier(c);
    break;
  }
  if (wild & ANY_TAG) barrier(c);
}

/* Messages between random pairs of ranks, one or two each, all at once. */
STEP exchange(MPI_Comm c, unsigned seed, int elements, Type type, int tag, int wild, int completion, int threads) {
  int me = rank_in(c), n = size_of(c), open = 0, buffers = 0;
  MPI_Request requests[64];
  int as = wild & ANY_TAG ? MPI_ANY_TAG : tag;
  if (seed % 3 == 0) requests[open++] = MPI_REQUEST_NULL;
  for (int half = 0; half < 2; half++) {
    /* Some post their receives first, others their sends. */
    if (half == (me + (int)(seed & 1)) % 2) {
      for (int other = 0; other < n; other++)
        for (unsigned i = 0; i < mix(seed, other, me) % 3; i++) {
          CALL(MPI_Irecv, in_of(buffers++), 3 * elements + 1, type.type, wild & ANY_SOURCE ? MPI_ANY_SOURCE : other, as, c,
               &requests[open]);
          open++;
          received(other, (long)elements * (1 + other % 3) * type.bytes);
        }
    } else {
      for (int other = 0; other < n; other++)
        for (unsigned i = 0; i < mix(seed, me, other) % 3; i++) {
          if (mix(seed, other, i) % 2)
            CALL(MPI_Isend, out, elements * (1 + me % 3), type.type, other, tag, c, &requests[open]);
          else
            CALL(MPI_Issend, out, elements * (1 + me % 3), type.type, other, tag, c, &requests[open]);
          open++;
          sent(other, (long)elements * (1 + me % 3) * type.bytes);
        }
    }
  }
  complete(completion + (threads ? 0 : me), open, requests, wild & WITH_STATUS);
  if (wild & ANY_TAG) barrier(c);
}

/* All send to one, which does not say from whom it receives. */
STEP fan_in(MPI_Comm c, int root, int elements, Type type, int tag, int synchronous, int wild) {
  int me = rank_in(c), n = size_of(c);
  MPI_Status own;
  root %= n;
  if (me != root) {
    if (synchronous)
      CALL(MPI_Ssend, out, elements + me, type.type, root, tag, c);
    else
      CALL(MPI_Send, out, elements + me, type.type, root, tag, c);
    sent(root, (long)(elements + me) * type.bytes);
  } else {
    for (int i = 1; i < n; i++)
      CALL(MPI_Recv, in, elements + MAX_RANKS, type.type, wild & ANY_SOURCE ? MPI_ANY_SOURCE : (root + i) % n, tag, c,
           wild & WITH_STATUS ? &own : MPI_STATUS_IGNORE);
    for (int other = 0; other < n; other++)
      if (other != root) received(other, (long)(elements + other) * type.bytes);
  }
}

STEP persistent(MPI_Comm c, int shift, int elements, Type type, int tag, int rounds, int how, int completion) {
  int me = rank_in(c), n = size_of(c);
  int to = (me + shift) % n, from = (me + n - shift % n) % n;
  MPI_Request requests[2];
  switch (how % 3) {
  case 0: CALL(MPI_Send_init, out, elements, type.type, to, tag, c, &requests[0]); break;
  case 1: CALL(MPI_Ssend_init, out, elements, type.type, to, tag, c, &requests[0]); break;
  case 2: CALL(MPI_Bsend_init, out, elements, type.type, to, tag, c, &requests[0]); break;
  }
  CALL(MPI_Recv_init, in, elements, type.type, how & 4 ? MPI_ANY_SOURCE : from, tag, c, &requests[1]);
  for (int i = 0; i < rounds; i++) {
    if (how & 8) {
      CALL(MPI_Startall, 2, requests);
    } else {
      CALL(MPI_Start, &requests[1]);
      CALL(MPI_Start, &requests[0]);
    }
    sent(to, (long)elements * type.bytes);
    received(from, (long)elements * type.bytes);
    complete(completion + i, 2, requests, how & 16);
    /* Both are complete already. */
    if (how & 32) CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
  }
  CALL(MPI_Request_free, &requests[0]);
  CALL(MPI_Request_free, &requests[1]);
}

/* No messages: a request that is cancelled, and partners that are no process. */
STEP nothing(MPI_Comm c, int tag) {
  MPI_Request request;
  MPI_Status status;
  CALL(MPI_Irecv, in, 1, MPI_INT, MPI_ANY_SOURCE, tag, c, &request);
  CALL(MPI_Cancel, &request);
  CALL(MPI_Wait, &request, &status);
  CALL(MPI_Send, out, 1, MPI_INT, MPI_PROC_NULL, tag, c);
  CALL(MPI_Recv, in, 1, MPI_INT, MPI_PROC_NULL, tag, c, MPI_STATUS_IGNORE);
  CALL(MPI_Irecv, in, 1, MPI_INT, MPI_PROC_NULL, tag, c, &request);
  CALL(MPI_Wait, &request, &status);
}

/* --- Collective operations. */

static int equal[MAX_RANKS], places[MAX_RANKS], ones[MAX_RANKS];

/* The arrays of counts and displacements of the "v" functions. */
static void make_counts(void) {
  for (int i = 0; i < MAX_RANKS; i++) {
    equal[i] = 5;
    places[i] = 5 * i;
    ones[i] = 1;
  }
}

STEP collective(MPI_Comm c, unsigned which, int root, int elements, int in_place) {
  int me = rank_in(c);
  root %= size_of(c);
  void *from = in_place ? MPI_IN_PLACE : out;
  void *from_at_root = in_place && me == root ? MPI_IN_PLACE : (void *)out;
  void *to_at_root = in_place && me == root ? MPI_IN_PLACE : (void *)in;
  collectives++;
  switch (which % 16) {
  case 0: CALL(MPI_Barrier, c); break;
  case 1: CALL(MPI_Bcast, out, elements, MPI_DOUBLE, root, c); break;
  case 2: CALL(MPI_Reduce, from_at_root, in, elements, MPI_INT, MPI_SUM, root, c); break;
  case 3: CALL(MPI_Allreduce, from, in, elements, MPI_DOUBLE, MPI_MAX, c); break;
  case 4: CALL(MPI_Gather, from_at_root, elements, MPI_INT, in, elements, MPI_INT, root, c); break;
  case 5: CALL(MPI_Scatter, out, elements, MPI_INT, to_at_root, elements, MPI_INT, root, c); break;
  case 6: CALL(MPI_Allgather, from, elements, MPI_INT, in, elements, MPI_INT, c); break;
  case 7: CALL(MPI_Alltoall, from, elements, MPI_INT, in, elements, MPI_INT, c); break;
  case 8: CALL(MPI_Alltoallv, out, equal, places, MPI_INT, in, equal, places, MPI_INT, c); break;
  case 9: CALL(MPI_Gatherv, out, 5, MPI_INT, in, equal, places, MPI_INT, root, c); break;
  case 10: CALL(MPI_Scatterv, out, equal, places, MPI_INT, in, 5, MPI_INT, root, c); break;
  case 11: CALL(MPI_Allgatherv, out, 5, MPI_INT, in, equal, places, MPI_INT, c); break;
  case 12: CALL(MPI_Reduce_scatter, out, in, ones, MPI_INT, MPI_SUM, c); break;
  case 13: CALL(MPI_Reduce_scatter_block, out, in, elements, MPI_INT, MPI_SUM, c); break;
  case 14: CALL(MPI_Scan, from, in, elements, MPI_INT, MPI_SUM, c); break;
  case 15: CALL(MPI_Exscan, out, in, elements, MPI_INT, MPI_SUM, c); break;
  }
}

/* One or two operations that do not block, beside a message around the ring. */
STEP nonblocking_collective(MPI_Comm c, unsigned which, int root, int elements, int tag, int completion) {
  int me = rank_in(c), n = size_of(c);
  MPI_Request requests[4];
  root %= n;
  collectives++;
  switch (which % 8) {
  case 0: CALL(MPI_Ibarrier, c, &requests[0]); break;
  case 1: CALL(MPI_Ibcast, out, elements, MPI_DOUBLE, root, c, &requests[0]); break;
  case 2: CALL(MPI_Ireduce, out, in_of(1), elements, MPI_INT, MPI_SUM, root, c, &requests[0]); break;
  case 3: CALL(MPI_Iallreduce, out, in_of(1), elements, MPI_INT, MPI_SUM, c, &requests[0]); break;
  case 4: CALL(MPI_Igather, out, 4, MPI_INT, in_of(1), 4, MPI_INT, root, c, &requests[0]); break;
  case 5: CALL(MPI_Iallgather, out, 4, MPI_INT, in_of(1), 4, MPI_INT, c, &requests[0]); break;
  case 6: CALL(MPI_Ialltoall, out, 4, MPI_INT, in_of(1), 4, MPI_INT, c, &requests[0]); break;
  case 7: CALL(MPI_Iscan, out, in_of(1), elements, MPI_INT, MPI_SUM, c, &requests[0]); break;
  }
  CALL(MPI_Irecv, in_of(2), elements, MPI_CHAR, (me + 1) % n, tag, c, &requests[1]);
  CALL(MPI_Ibarrier, c, &requests[2]);
  collectives++;
  CALL(MPI_Isend, out, elements, MPI_CHAR, (me + n - 1) % n, tag, c, &requests[3]);
  sent(0, elements);
  received(0, elements);
  complete(completion, 4, requests, completion & 1);
}

/* --- Communicators. */

static void made(MPI_Comm c) {
  if (c != MPI_COMM_NULL) communicators++;
}

STEP new_communicator(MPI_Comm c, MPI_Comm *new, int how, unsigned seed) {
  int me = rank_in(c), n = size_of(c);
  MPI_Request request;
  MPI_Group all, some;
  int members[MAX_RANKS], number = 0, color;
  switch (how % 8) {
  case 0: CALL(MPI_Comm_dup, c, new); break;
  case 1: CALL(MPI_Comm_split, c, mix(seed, me, 0) % 2, -me, new); break;
  case 2:
    color = mix(seed, me, 1) % 3;
    CALL(MPI_Comm_split, c, color == 2 ? MPI_UNDEFINED : color, (int)(mix(seed, me, 2) % 5), new);
    break;
  case 3:
  case 4:
    for (int i = 0; i < n; i++)
      if (mix(seed, i, 3) % 3) members[number++] = i;
    MPI_Comm_group(c, &all);
    MPI_Group_incl(all, number, members, &some);
    if (how % 8 == 3) {
      CALL(MPI_Comm_create, c, some, new);
    } else {
      *new = MPI_COMM_NULL;
      /* Others do not call it. */
      if (mix(seed, me, 3) % 3) CALL(MPI_Comm_create_group, c, some, (int)(seed % 1000), new);
    }
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    break;
  case 5:
    CALL(MPI_Comm_idup, c, new, &request);
    CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
    break;
  case 6: {
    int dims[1] = {n}, periods[1] = {1};
    CALL(MPI_Cart_create, c, 1, dims, periods, 0, new);
    break;
  }
  case 7: CALL(MPI_Comm_split_type, c, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, new); break;
  }
  made(*new);
}

STEP free_communicator(MPI_Comm *c) {
  if (*c != MPI_COMM_NULL) CALL(MPI_Comm_free, c);
}

/* Two halves of a communicator, and what goes between them. */
STEP intercommunicator(MPI_Comm c, int elements, Type type, int tag, int wild, int completion, int merged) {
  int me = rank_in(c), n = size_of(c), half = me >= (n + 1) / 2, open = 0;
  if (n < 2) return;
  MPI_Comm local, inter, one;
  MPI_Request requests[MAX_RANKS + 1];
  CALL(MPI_Comm_split, c, half, me, &local);
  made(local);
  CALL(MPI_Intercomm_create, local, 0, c, half ? 0 : (n + 1) / 2, tag, &inter);
  made(inter);
  int remote, own = rank_in(inter), mine = size_of(inter);
  MPI_Comm_remote_size(inter, &remote);
  for (int other = 0; other < remote; other++)
    if (other % mine == own) {
      CALL(MPI_Irecv, in_of(open), elements, type.type, wild & ANY_SOURCE ? MPI_ANY_SOURCE : other, tag, inter,
           &requests[open]);
      open++;
      received(other, (long)elements * type.bytes);
    }
  CALL(MPI_Isend, out, elements, type.type, own % remote, tag, inter, &requests[open]);
  open++;
  sent(0, (long)elements * type.bytes);
  complete(completion, open, requests, wild & WITH_STATUS);
  CALL(MPI_Allreduce, out, in, 2, MPI_INT, MPI_SUM, inter);
  CALL(MPI_Bcast, out, 3, MPI_INT, half ? 0 : own == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
  collectives += 2;
  if (merged) {
    CALL(MPI_Intercomm_merge, inter, half, &one);
    made(one);
    ring(one, 1, elements, type, tag, 0, wild, 0, completion);
    CALL(MPI_Comm_free, &one);
  }
  CALL(MPI_Comm_free, &inter);
  CALL(MPI_Comm_free, &local);
}

/* --- Threads. */

enum { THREADS = 3 };
typedef struct {
  MPI_Comm c;
  unsigned seed;
  Type type;
} Work;

static void *on_thread(void *argument) {
  Work *work = argument;
  make_buffers();
  for (unsigned i = 0; i < 6; i++) {
    unsigned random = mix(work->seed, i, 7);
    ring(work->c, 1 + random % 3, 1 + random % 50, work->type, 2 * i, random >> 8, random >> 12 & 5, 0, random >> 16);
    exchange(work->c, random, 1 + random % 20, work->type, 2 * i + 1, random >> 20 & 5, random >> 24, 1);
  }
  collective(work->c, work->seed, 0, 4, 0);
  free(out);
  free(in);
  return NULL;
}

STEP threads(MPI_Comm c, unsigned seed, Type type) {
  pthread_t all[THREADS];
  Work work[THREADS];
  for (unsigned i = 0; i < THREADS; i++) {
    work[i] = (Work){.seed = mix(seed, i, 9), .type = type};
    CALL(MPI_Comm_dup, c, &work[i].c);
    made(work[i].c);
  }
  for (int i = 0; i < THREADS; i++) pthread_create(&all[i], NULL, on_thread, &work[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
  for (int i = 0; i < THREADS; i++) CALL(MPI_Comm_free, &work[i].c);
}

/* --- Datatypes. */

/* One of the program's own, in place of another one. */
static void new_type(Type *type, int how) {
  if (type->type != MPI_DATATYPE_NULL) MPI_Type_free(&type->type);
  switch (how % 3) {
  case 0:
    MPI_Type_vector(3, 2, 4, MPI_INT, &type->type);
    type->bytes = 24;
    break;
  case 1:
    MPI_Type_contiguous(3, MPI_DOUBLE, &type->type);
    type->bytes = 24;
    break;
  case 2:
    MPI_Type_vector(2, 5, 6, MPI_CHAR, &type->type);
    type->bytes = 10;
    break;
  }
  MPI_Type_commit(&type->type);
}
