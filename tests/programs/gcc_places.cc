// As gcc_places.c, in C++: templates, lambdas, member functions, exceptions.
#include <cstdio>
#include <vector>

static long sums[64];

__attribute__((noinline)) static void add(int at, int value) {
  __atomic_fetch_add(&sums[at], value, __ATOMIC_RELAXED);
}

template <typename Body>
static void for_each(int n, Body body) {
#pragma omp parallel for num_threads(2) schedule(dynamic) // @parallel @for
  for (int i = 0; i < n; i++)
    body(i);
}

template <int Place>
struct Grid {
  std::vector<int> values = std::vector<int>(8, 1);

  void step() {
#pragma omp parallel num_threads(2) // @parallel
    {
      add(Place, 1);
#pragma omp for schedule(dynamic) // @for
      for (std::size_t i = 0; i < values.size(); i++)
        add(Place, values[i]);
#pragma omp single // @single
      {
        add(Place, 2);
      }
    }
  }
};

static int fib(int n) {
  if (n < 2)
    return n;
  int x, y;
#pragma omp task shared(x) // @task
  x = fib(n - 1);
#pragma omp task shared(y) // @task
  y = fib(n - 2);
#pragma omp taskwait
  return x + y;
}

int main() {
  auto twice = [](int n) {
    add(0, n);
#pragma omp parallel num_threads(2) // @parallel
    {
      add(1, n);
#pragma omp sections // @sections
      {
#pragma omp section
        add(2, n);
#pragma omp section
        add(3, n);
      }
    }
    add(4, n);
  };
  twice(1);
  twice(2);
  for_each(8, [](int i) { add(5, i); });
  for_each(4, [](int i) { add(6, i); });
  Grid<7>().step();
  std::puts("tasks");
  int result = 0;
#pragma omp parallel num_threads(2) // @parallel
  {
    add(8, 1);
#pragma omp single nowait // @single
    {
      try {
#pragma omp taskgroup
        {
#pragma omp task // @task
          result = fib(5);
        }
        std::vector<int> values(4, 1);
#pragma omp taskloop // @taskloop @task
        for (std::size_t i = 0; i < values.size(); i++)
          add(9, values[i]);
      } catch (int) {
        add(10, 1);
      }
    }
  }
  return result == 5 ? 0 : 1;
}
