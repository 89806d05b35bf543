/* Regions in a template, in a member function and in a lambda.
 *
 * parallel_begin: 3, on two threads each. Prints `checksum 6`. tests/tests/names.rs finds the lines by their comments. */
#include <cstdio>

template <typename T> __attribute__((noinline)) T count() {
  T sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum) /* template */
  sum += 1;
  return sum;
}

namespace grid {
struct Grid {
  int cells = 0;
  __attribute__((noinline)) int step() {
#pragma omp parallel num_threads(2) /* member */
    {
#pragma omp atomic
      cells++;
    }
    return cells;
  }
};
} // namespace grid

int main() {
  int sum = 0;
  auto lambda = [&](int by) __attribute__((noinline)) {
#pragma omp parallel num_threads(2) reduction(+ : sum) /* lambda */
    sum += by;
  };
  lambda(1);
  grid::Grid grid;
  std::printf("checksum %d\n", sum + grid.step() + static_cast<int>(count<double>()));
}
