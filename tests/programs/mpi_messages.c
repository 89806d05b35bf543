/* Messages and collective operations of many kinds, which each rank counts itself.
 *
 *     mpi_messages
 *
 * Each rank prints one line of JSON: the messages that it sent and received with their bytes, its collective operations, and the
 * communicators that it took part in creating. The program runs on 2 ranks or more. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define MAX_RANKS 16
#define WORLD MPI_COMM_WORLD

static struct {
  long sends, sent_bytes, receives, received_bytes, collectives, communicators;
} count;

static int rank, ranks, right, left;
static double out[4096], in[4096];

static void sent(long bytes) {
  count.sends++;
  count.sent_bytes += bytes;
}

static void received(long bytes) {
  count.receives++;
  count.received_bytes += bytes;
}

/* Each rank sends to its right neighbour and receives from its left one. */
static void ring(void) {
  MPI_Status status;
  for (int i = 1; i <= 50; i++) {
    MPI_Sendrecv(out, i, MPI_DOUBLE, right, i, in, 4096, MPI_DOUBLE, left, i, WORLD, &status);
    sent(8 * i);
    received(8 * i);
  }
}

/* All send to rank 0, which does not say from whom it receives. */
static void any_source(void) {
  for (int round = 0; round < 20; round++) {
    if (rank != 0) {
      MPI_Send(out, rank, MPI_INT, 0, 100 + round, WORLD);
      sent(4 * rank);
    } else {
      for (int other = 1; other < ranks; other++) {
        MPI_Recv(in, 4096, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, MPI_STATUS_IGNORE);
        received(4 * other);
      }
    }
    MPI_Barrier(WORLD);
    count.collectives++;
  }
}

static void nonblocking(void) {
  MPI_Request requests[2 * MAX_RANKS];
  for (int round = 0; round < 10; round++) {
    int open = 0;
    for (int other = 0; other < ranks; other++)
      if (other != rank) {
        MPI_Irecv(in + 64 * other, 64, MPI_DOUBLE, MPI_ANY_SOURCE, 7, WORLD, &requests[open++]);
        received(80);
      }
    for (int other = 0; other < ranks; other++)
      if (other != rank) {
        MPI_Isend(out, 10, MPI_DOUBLE, other, 7, WORLD, &requests[open++]);
        sent(80);
      }
    MPI_Waitall(open, requests, MPI_STATUSES_IGNORE);
  }
  for (int round = 0; round < 5; round++) {
    int index, flag, done = 0;
    MPI_Irecv(in, 4096, MPI_CHAR, left, MPI_ANY_TAG, WORLD, &requests[0]);
    MPI_Isend(out, 33, MPI_CHAR, right, 9 + round, WORLD, &requests[1]);
    received(33);
    sent(33);
    while (done < 2) {
      MPI_Status status;
      MPI_Testany(2, requests, &index, &flag, &status);
      done += flag && index != MPI_UNDEFINED;
    }
  }
}

/* A request that is cancelled, and partners that are no process, make no messages. */
static void no_messages(void) {
  MPI_Status status;
  MPI_Request request;
  MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD);
  MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD, &status);
  MPI_Irecv(in, 1, MPI_INT, left, 12345, WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
}

static void persistent(void) {
  MPI_Request requests[2];
  MPI_Send_init(out, 5, MPI_DOUBLE, right, 55, WORLD, &requests[0]);
  MPI_Recv_init(in, 5, MPI_DOUBLE, left, 55, WORLD, &requests[1]);
  for (int round = 0; round < 6; round++) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    sent(40);
    received(40);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

/* Messages with the same ranks and tags in communicators of odd and even ranks, in reverse order. */
static void communicators(void) {
  MPI_Comm half, copy;
  int own, size;
  MPI_Comm_split(WORLD, rank % 2, -rank, &half);
  MPI_Comm_dup(half, &copy);
  count.communicators += 2;
  MPI_Comm_rank(copy, &own);
  MPI_Comm_size(copy, &size);
  int next = (own + 1) % size, previous = (own + size - 1) % size;
  MPI_Sendrecv(out, 3, MPI_DOUBLE, next, 1, in, 3, MPI_DOUBLE, previous, 1, copy, MPI_STATUS_IGNORE);
  sent(24);
  received(24);
  double one = rank, sum;
  MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
  MPI_Bcast(out, 100, MPI_DOUBLE, 0, half);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, WORLD);
  count.collectives += 3;
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
}

/* A datatype of the program's own, synchronous sends, and receives of messages that were looked at before. */
static void probes(void) {
  MPI_Datatype pairs;
  MPI_Type_vector(4, 2, 5, MPI_FLOAT, &pairs);
  MPI_Type_commit(&pairs);
  if (rank != 0) {
    MPI_Ssend(out, 2, pairs, 0, 3, WORLD);
    sent(64);
  } else {
    for (int other = 1; other < ranks; other++) {
      MPI_Status status;
      MPI_Probe(MPI_ANY_SOURCE, 3, WORLD, &status);
      MPI_Recv(in, 2, pairs, status.MPI_SOURCE, 3, WORLD, &status);
      received(64);
    }
  }
  MPI_Type_free(&pairs);
  MPI_Message message;
  MPI_Request request;
  MPI_Isend(out, 7, MPI_INT, right, 4, WORLD, &request);
  MPI_Mprobe(left, 4, WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(in, 7, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  sent(28);
  received(28);
}

static void nonblocking_barrier(void) {
  MPI_Request request;
  MPI_Ibarrier(WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  count.collectives++;
}

int main(int argc, char **argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &ranks);
  right = (rank + 1) % ranks;
  left = (rank + ranks - 1) % ranks;
  ring();
  any_source();
  nonblocking();
  no_messages();
  persistent();
  communicators();
  probes();
  nonblocking_barrier();
  char line[256];
  snprintf(line, sizeof line,
           "{\"rank\": %d, \"sends\": %ld, \"sent_bytes\": %ld, \"receives\": %ld, \"received_bytes\": %ld, "
           "\"collectives\": %ld, \"communicators\": %ld}\n",
           rank, count.sends, count.sent_bytes, count.receives, count.received_bytes, count.collectives,
           count.communicators);
  fputs(line, stdout);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
