/* What tests/programs/mpi_player.c and the library that it calls share. */

#define MOST 20
#define NONE -1
/* Rounds: all calls succeed, all fail, or none wants a status or names a source and tag. */
#define FAILING 1
#define IGNORING 2

/* What a thread of the program passes, and what the library does with it. */
extern _Thread_local struct player {
    int round, result;
    /* Arguments: their number, and places of the status and of the variable for Fortran's error code. */
    int count, status, error;
    /* How many statuses the call returns. */
    int statuses;
    long words[MOST];
    /* How many calls have reached the library. */
    int calls;
} player;
