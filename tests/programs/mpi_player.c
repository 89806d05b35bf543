/* Makes each call of the files that tests/src/mpi_player.rs generates, with words that the library compares
   (mpi_player_library.c). Arguments: the number of threads that play, and the rounds. In each round, the library returns another
   result or the program passes other values. */
#include "mpi_player.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "declarations.h"

_Thread_local struct player player;

/* Memory for each argument that is passed by its address. */
static _Thread_local long area[MOST][64];

static long address(int argument, int bytes, long value) {
    for (int element = 0; element < (int)sizeof area[0] / bytes; element++) {
        if (bytes == 4)
            ((int *)area[argument])[element] = (int)value;
        else
            area[argument][element] = value;
    }
    return (long)area[argument];
}

typedef long function(long, ...);

static void check(const char *name, function *called, int words, int status, int error) {
    long *w = player.words;
    player.count = words;
    player.status = status;
    player.error = error;
    long result = called(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13], w[14], w[15],
                         w[16], w[17], w[18], w[19]);
    if (error != NONE)
        result = *(int *)area[error];
    if (player.calls != 1 || (int)result != player.result) {
        printf("%s: %d calls, result %d instead of %d\n", name, player.calls, (int)result, player.result);
        exit(1);
    }
    player.calls = 0;
}

/* An argument of the call, by its place: an address, or the value itself. */
#define A(place, bytes, value) player.words[place] = address(place, bytes, value);
#define V(place, value) player.words[place] = value;
/* A status, which some rounds ignore. */
#define S(place, ignore, number)                                                                                                    \
    player.statuses = number;                                                                                                       \
    player.words[place] = player.round == IGNORING ? ignore : address(place, 4, -9);
/* A value that some rounds leave open. */
#define W(value, any) (player.round == IGNORING ? any : value)

#define CALL(symbol, words, status, error, arguments)                                                                               \
    {                                                                                                                               \
        extern function symbol;                                                                                                     \
        arguments check(#symbol, symbol, words, status, error);                                                                     \
    }

#define MOST_THREADS 64

static pthread_barrier_t barrier;
static int rounds;
static char **names_of_rounds;

static void *play(void *is_first) {
    for (int place = 0; place < rounds; place++) {
        player.round = atoi(names_of_rounds[place]);
        player.result = player.round == FAILING ? 15 : 0;
        if (is_first) {
#include "first.h"
        }
        pthread_barrier_wait(&barrier);
#include "calls.h"
        pthread_barrier_wait(&barrier);
        if (is_first) {
#include "last.h"
        }
    }
    return 0;
}

int main(int count, char **texts) {
    int others = atoi(texts[1]) - 1;
    pthread_t threads[MOST_THREADS];
    rounds = count - 2;
    names_of_rounds = texts + 2;
    pthread_barrier_init(&barrier, 0, others + 1);
    for (int thread = 0; thread < others; thread++)
        pthread_create(&threads[thread], 0, play, 0);
    play(&barrier);
    for (int thread = 0; thread < others; thread++)
        pthread_join(threads[thread], 0);
    return 0;
}
