// A child that uses no OpenMP.
#include <stdio.h>

int main(void) {
    puts("hello");
    return 0;
}
