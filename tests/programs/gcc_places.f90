! As gcc_places.c, in Fortran: a module, an internal procedure, and no line of its own for any directive.
module steps
  implicit none
  integer :: sums(64) = 0
contains
  subroutine add(at, value)
    integer, intent(in) :: at, value
    !$omp atomic
    sums(at) = sums(at) + value
  end subroutine

  subroutine sweep(n)
    integer, intent(in) :: n
    integer :: i
    call add(1, n)
    !$omp parallel do schedule(dynamic) num_threads(2) ! @parallel @for
    do i = 1, n
      call add(2, i)
    end do
    !$omp end parallel do
    !$omp parallel num_threads(2) & ! @parallel
    !$omp   private(i)
    call add(3, 1)
    !$omp do schedule(guided) ! @for
    do i = 1, n
      call add(4, i)
    end do
    !$omp end do
    !$omp single ! @single
    call add(5, 1)
    !$omp end single
    call add(6, 1)
    !$omp sections ! @sections
    !$omp section
    call add(7, 1)
    !$omp section
    call add(8, 1)
    !$omp end sections
    !$omp end parallel
  end subroutine
end module

program places
  use steps
  implicit none
  integer :: i, step
  print '(a)', 'begin'
  do step = 1, 2
    call sweep(8)
  end do
  print '(a)', 'tasks'
  !$omp parallel num_threads(2) private(i) ! @parallel
  call add(9, 1)
  !$omp single ! @single
  do i = 1, 4
    !$omp task firstprivate(i) ! @task
    call add(10, i)
    !$omp end task
  end do
  !$omp task ! @task
  call add(11, 1)
  !$omp end task
  !$omp taskwait
  !$omp taskloop num_tasks(2) ! @taskloop @task
  do i = 1, 4
    call add(12, i)
  end do
  !$omp end taskloop
  !$omp end single
  !$omp end parallel
  call inside(4)
  print '(a)', 'end'
contains
  subroutine inside(n)
    integer, intent(in) :: n
    call add(13, n)
    !$omp parallel num_threads(2) ! @parallel
    call add(14, n)
    !$omp end parallel
  end subroutine
end program
