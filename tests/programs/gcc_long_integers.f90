! Compiled with -fdefault-integer-8, it calls functions that only libgomp has: omp_set_num_threads_8_.
program long_integers
  use omp_lib
  implicit none
  integer :: threads
  call omp_set_num_threads(3)
  threads = 0
  !$omp parallel reduction(+: threads)
  threads = threads + 1
  !$omp end parallel
  print '(a)', merge('right', 'wrong', threads == 3)
end program
