/* A program that is linked statically, whose runtimes load the tools that variables name. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    const char *variables[] = {"OMP_TOOL_LIBRARIES", "NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64", "KOKKOS_TOOLS_LIBS"};
    int loaded = 0, sum = 0;
    for (int i = 0; i < 4; i++) {
        const char *path = getenv(variables[i]);
        void *tool = path && path[0] ? dlopen(path, RTLD_NOW) : NULL;
        void *(*start)(unsigned, const char *) = tool ? (void *(*)(unsigned, const char *))dlsym(tool, "ompt_start_tool") : NULL;
        loaded += tool != NULL;
        if (start && start(201811, "a static runtime"))
            puts("started");
    }
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 100; i++)
        sum += i;
    printf("%d\n", sum);
    fprintf(stderr, "loaded %d\n", loaded);
    return 0;
}
