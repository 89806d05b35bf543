//! Programs that only compile where a compiler has what they need.

/// A program in C that uses the C library.
pub(super) const C: &str = "#include <stdio.h>\nint main(void) { return printf(\"\") != 0; }\n";
/// One that uses OpenMP's library.
pub(super) const OPENMP: &str =
    "#include <omp.h>\nint main(void) {\n#pragma omp parallel\n  omp_get_thread_num();\n}\n";
/// One with a target region.
pub(super) const TARGET: &str =
    "int main(void) {\n  int x = 0;\n#pragma omp target map(tofrom: x)\n  x = 1;\n  return x;\n}\n";
/// One that uses MPI.
pub(super) const MPI: &str =
    "#include <mpi.h>\nint main(int n, char **words) { MPI_Init(&n, &words); return MPI_Finalize(); }\n";
/// One that uses the library of OTF2.
pub(super) const OTF2: &str =
    "#include <otf2/otf2.h>\nint main(void) { return OTF2_Error_GetName(0) == 0; }\n";
/// One in Fortran.
pub(super) const FORTRAN: &str = "program p\n  use omp_lib\n  print *, omp_get_max_threads()\nend program\n";
