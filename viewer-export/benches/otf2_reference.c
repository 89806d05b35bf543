/* Writes pairs of Enter and Leave with the reference library of OTF2, for comparison with ours: FOLDER PAIRS. Prints the
 * seconds of processor time that writing took. */
#include <otf2/otf2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REGIONS = 200 };

static OTF2_FlushType pre_flush(void* data, OTF2_FileType type, OTF2_LocationRef location, void* caller, bool final) {
    return OTF2_FLUSH;
}

static uint64_t now;

static OTF2_TimeStamp post_flush(void* data, OTF2_FileType type, OTF2_LocationRef location) {
    return now;
}

static double cpu(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    uint64_t pairs = strtoull(argv[2], NULL, 10);
    double start = cpu();
    OTF2_Archive* archive = OTF2_Archive_Open(argv[1], "traces", OTF2_FILEMODE_WRITE, 1 << 20, 4 << 20,
                                              OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    OTF2_FlushCallbacks flush = { .otf2_pre_flush = pre_flush, .otf2_post_flush = post_flush };
    OTF2_Archive_SetFlushCallbacks(archive, &flush, NULL);
    OTF2_Archive_SetSerialCollectiveCallbacks(archive);
    OTF2_Archive_OpenEvtFiles(archive);
    OTF2_EvtWriter* events = OTF2_Archive_GetEvtWriter(archive, 0);
    for (uint64_t pair = 0; pair < pairs; ++pair) {
        OTF2_EvtWriter_Enter(events, NULL, now += 10, pair % REGIONS);
        OTF2_EvtWriter_Leave(events, NULL, now += 10, pair % REGIONS);
    }
    OTF2_Archive_CloseEvtWriter(archive, events);
    OTF2_Archive_CloseEvtFiles(archive);
    OTF2_Archive_Close(archive);
    printf("%.9f\n", cpu() - start);
    return 0;
}
