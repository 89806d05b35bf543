// Regions in files that debug information names in several ways, and in files of one name.

static volatile int sink;

__attribute__((noinline)) static void visit(int value) { sink = value; }

static void one_file(void) {
#line 100 "sub/../one_file.h"
#pragma omp parallel num_threads(2)
  visit(1);
#line 100 "./one_file.h"
#pragma omp parallel num_threads(2)
  visit(2);
}

static void two_files(void) {
#line 7 "east/kernel.c"
#pragma omp parallel num_threads(2)
  visit(3);
#line 7 "west/kernel.c"
#pragma omp parallel num_threads(2)
  visit(4);
}

int main(void) {
  one_file();
  two_files();
  return 0;
}
