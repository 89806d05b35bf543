/* Barriers: EPCC's BARRIER. With -DPLACES=20 or 200 they are at as many places of the source, one behind the other: as many code
 * addresses as a real program's loop may have. */
#include "program.h"

#ifndef PLACES
#define PLACES 1
#endif

#define PLACE delay(); _Pragma("omp barrier")
#define PLACES_1 PLACE
#define PLACES_10 PLACE PLACE PLACE PLACE PLACE PLACE PLACE PLACE PLACE PLACE
#define PLACES_20 PLACES_10 PLACES_10
#define PLACES_200                                                                                                              \
  PLACES_20 PLACES_20 PLACES_20 PLACES_20 PLACES_20 PLACES_20 PLACES_20 PLACES_20 PLACES_20 PLACES_20
#define PLACES_OF(n) PLACES_##n
#define ALL_PLACES(n) PLACES_OF(n)

void work(long count) {
#pragma omp parallel
  for (long i = 0; i < count / PLACES; i++) {
    ALL_PLACES(PLACES)
  }
}
