/* A tree of tasks: the n queens problem, counted by one task per queen set, down to a depth.
 *
 *     clang -g -O2 -fopenmp task_tree.c -o task_tree
 *     omptrace record -o task_tree.omptrace -- ./task_tree
 *     omptrace convert task_tree.omptrace --to chrome -o task_tree.json.gz   open it at https://ui.perfetto.dev
 *
 * What to look for
 *
 *   One thread begins, inside "!$omp single"; the others sit in its barrier and take tasks from there. Each "!$omp task"
 *   lies where it ran, not where it was made: click one and follow the arrow back to its creation. A task that waits for
 *   its children ("!$omp taskwait") runs others on top of itself meanwhile.
 *
 *   With the default depth of 3 the leaves take long enough. With ./task_tree 12 11 there is a task for nearly every queen:
 *   the same answer takes longer, and the timeline is mostly creation and waiting.
 *
 * ./task_tree [QUEENS 15] [DEPTH 3] */
#include <stdio.h>
#include <stdlib.h>

static int queens, depth_of_tasks;

/* The solutions with queens set in rows 0 to row-1; a set bit of the masks is a column that they attack in this row. */
static long solutions(int row, unsigned columns, unsigned left, unsigned right) {
  if (row == queens)
    return 1;
  unsigned all = (1u << queens) - 1;
  long count = 0;
  for (unsigned free = all & ~(columns | left | right); free; free &= free - 1) {
    unsigned queen = free & -free;
    unsigned next_columns = columns | queen, next_left = (left | queen) << 1, next_right = (right | queen) >> 1;
    if (row < depth_of_tasks) {
#pragma omp task shared(count) firstprivate(next_columns, next_left, next_right)
      {
        long found = solutions(row + 1, next_columns, next_left, next_right);
#pragma omp atomic
        count += found;
      }
    } else {
      count += solutions(row + 1, next_columns, next_left, next_right);
    }
  }
  if (row < depth_of_tasks) {
#pragma omp taskwait
  }
  return count;
}

int main(int argc, char **argv) {
  queens = argc > 1 ? atoi(argv[1]) : 15;
  depth_of_tasks = argc > 2 ? atoi(argv[2]) : 3;
  if (queens < 1 || queens > 20)
    return EXIT_FAILURE;
  long count = 0;
#pragma omp parallel
#pragma omp single
  count = solutions(0, 0, 0, 0);
  printf("%d queens: %ld solutions\n", queens, count);
}
