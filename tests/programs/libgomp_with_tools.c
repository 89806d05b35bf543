// A libgomp that looks for tools itself, as that of a later GCC will.
const char *const searched = "ompt_start_tool";

int GOMP_parallel(void (*function)(void *), void *data, unsigned threads, unsigned flags) {
    (void)threads, (void)flags;
    function(data);
    return 0;
}
