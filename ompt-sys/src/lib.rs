//! The OpenMP tools interface (OMPT) of OpenMP 5.2 and 6.0: types, enums, callback and entry-point signatures
