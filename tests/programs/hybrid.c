/* A program of MPI and OpenMP, built by GCC: each rank has regions of its own, and all meet after each.
 *
 *     hybrid [REGIONS 20]
 *
 * Each rank makes: parallel_begin REGIONS. Rank 0 prints `ranks N checksum C`, where C is N * REGIONS * 1000. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int provided, rank, ranks;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int regions = argc > 1 ? atoi(argv[1]) : 20;
  long checksum = 0;
  for (int region = 0; region < regions; region++) {
    long own = 0, all = 0;
#pragma omp parallel for schedule(dynamic, 100) reduction(+ : own)
    for (int i = 0; i < 1000; i++)
      own += 1;
    MPI_Allreduce(&own, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    checksum += all;
  }
  if (rank == 0)
    printf("ranks %d checksum %ld\n", ranks, checksum);
  MPI_Finalize();
  return 0;
}
