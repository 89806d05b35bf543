! Regions in the main program, in a procedure of a module, and in one outside.
!
! parallel_begin: 3, on two threads each. Prints `checksum 6`. tests/tests/names.rs finds the lines by their comments.
module steps
  implicit none
contains
  subroutine advance(total)
    integer, intent(inout) :: total
    !$omp parallel num_threads(2) reduction(+ : total) ! module procedure
    total = total + 1
    !$omp end parallel
  end subroutine advance
end module steps

subroutine outside(total)
  implicit none
  integer, intent(inout) :: total
  !$omp parallel num_threads(2) reduction(+ : total) ! external procedure
  total = total + 1
  !$omp end parallel
end subroutine outside

program Relaxation
  use steps
  implicit none
  external :: outside
  integer :: total
  total = 0
  !$omp parallel num_threads(2) reduction(+ : total) ! main program
  total = total + 1
  !$omp end parallel
  call advance(total)
  call outside(total)
  print '(a, i0)', 'checksum ', total
end program Relaxation
