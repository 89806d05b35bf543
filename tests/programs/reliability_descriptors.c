/* Closes every descriptor that it does not know, as daemons do, and opens files of its own, which get the numbers of what was
 * there before.
 *
 *     reliability_descriptors FOLDER [TIMES 10] [ROUNDS 4000] [remove]
 *
 * TIMES: with `remove`, removes all files of FOLDER; closes all from 3 on; then opens 80 files in FOLDER; then ROUNDS regions on
 * two threads, each with a critical section.
 *
 * parallel_begin, parallel_end: ROUNDS * (TIMES + 1); mutex_released: twice as many. Prints `checksum N`, the number of
 * criticals, and lines if a file of its own has not what it wrote, or errno changed from one critical section to the next. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 80, DESCRIPTORS = 1024 };

static const char *folder;
static long sum, changed_errno;

static void regions(int rounds) {
  for (int i = 0; i < rounds; i++) {
#pragma omp parallel num_threads(2)
#pragma omp critical
    {
      sum++;
      changed_errno += i > 0 && errno != 4711;
      errno = 4711;
    }
  }
}

static void remove_all(void) {
  DIR *all = opendir(folder);
  for (struct dirent *entry; all && (entry = readdir(all));)
    unlinkat(dirfd(all), entry->d_name, 0);
  closedir(all);
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  folder = argv[1];
  int times = argc > 2 ? atoi(argv[2]) : 10;
  int rounds = argc > 3 ? atoi(argv[3]) : 4000;
  regions(rounds);
  for (int time = 0; time < times; time++) {
    if (argc > 4)
      remove_all();
    for (int descriptor = 3; descriptor < DESCRIPTORS; descriptor++)
      close(descriptor);
    int files[FILES];
    for (int i = 0; i < FILES; i++) {
      char name[4096];
      snprintf(name, sizeof name, "%s/mine.%d", folder, i);
      files[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
      if (files[i] < 0 || write(files[i], name, strlen(name)) < 0)
        return 3;
    }
    regions(rounds);
    for (int i = 0; i < FILES; i++) {
      char name[4096], found[4097];
      snprintf(name, sizeof name, "%s/mine.%d", folder, i);
      ssize_t len = pread(files[i], found, sizeof found, 0);
      if (len != (ssize_t)strlen(name) || memcmp(name, found, len) != 0)
        printf("%s is not as it was written\n", name);
    }
  }
  if (changed_errno)
    printf("errno changed %ld times\n", changed_errno);
  printf("checksum %ld\n", sum);
  return 0;
}
