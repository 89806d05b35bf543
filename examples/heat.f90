! Heat in a rod, in Fortran, with OpenMP.
!
!     gfortran -g -O2 -fopenmp heat.f90 -o heat
!     omptrace record -o heat.omptrace -- ./heat
!     omptrace convert heat.omptrace --to chrome -o heat.json.gz          open it at https://ui.perfetto.dev
!
! What to look for
!
!   gfortran links to libgomp, which has no tools interface: `omptrace record` says so, and runs the
!   program on LLVM's runtime instead. What is seen is LLVM's scheduling, then.
!
!   One parallel region holds all the steps; each step is a loop and a barrier. gfortran compiles a
!   static loop to plain code, without a call to the runtime: between two barriers there is nothing
!   to see but the time. The loop over the probes has a dynamic schedule, and shows. The critical
!   section collects what each thread found.
!
! ./heat [STEPS]
program heat
  use omp_lib
  implicit none
  integer, parameter :: cells = 400000, probes = 64
  real(8), allocatable :: rod(:), next(:)
  real(8) :: total, found
  integer :: i, step, steps = 1500
  character(16) :: argument

  if (command_argument_count() > 0) then
    call get_command_argument(1, argument)
    read (argument, *) steps
  end if
  allocate (rod(0:cells + 1), next(0:cells + 1))
  rod = 0
  rod(0) = 100
  next = rod
  total = 0

  !$omp parallel private(step, i, found)
  do step = 1, steps
    !$omp do schedule(static)
    do i = 1, cells
      next(i) = 0.5d0 * rod(i) + 0.25d0 * (rod(i - 1) + rod(i + 1))
    end do
    !$omp end do
    !$omp do schedule(static)
    do i = 1, cells
      rod(i) = next(i)
    end do
    !$omp end do
  end do

  found = 0
  !$omp do schedule(dynamic, 4)
  do i = 1, probes
    found = found + sum(rod(i * (cells / probes) - cells / probes + 1:i * (cells / probes)))
  end do
  !$omp end do nowait
  !$omp critical (collect)
  total = total + found
  !$omp end critical (collect)
  !$omp end parallel

  print '(a, f0.6)', 'heat ', total
end program heat
