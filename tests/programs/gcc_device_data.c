/* Data on the last two of DEVICES devices, from two threads at once. Prints the sum that comes back, and how many devices there are. */
#include <omp.h>
#include <stdio.h>

int main(void) {
  int sum = 0, devices = omp_get_num_devices();
#pragma omp parallel num_threads(2) reduction(+ : sum)
  {
    int device = devices - 1 - omp_get_thread_num(), numbers[100];
    for (int i = 0; i < 100; i++)
      numbers[i] = i;
#pragma omp target enter data map(to : numbers) device(device)
    for (int i = 0; i < 100; i++)
      numbers[i] = 0;
#pragma omp target exit data map(from : numbers) device(device)
    for (int i = 0; i < 100; i++)
      sum += numbers[i];
  }
  printf("sum %d on %d devices\n", sum, devices);
  return 0;
}
