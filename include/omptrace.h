/* Names phases of a program for omptrace, in C and C++. Without the tracer, each call costs a test of a variable.
 *
 *     omptrace_begin("solver", "step");    the calling thread begins a phase; the domain may be NULL
 *     omptrace_end("solver");              the newest one of that domain ends
 *     omptrace_frame_begin("time loop");   a time step, of the whole process
 *     omptrace_frame_end("time loop");
 *     omptrace_mark("solver", "converged");
 *     omptrace_count("solver", "iterations", 17);
 *
 * In C++: omptrace::phase phase("solver", "step");   until the end of the block
 *
 * There is nothing to link, except -ldl with a C library older than glibc 2.34. Apache-2.0 OR MIT. */
#ifndef OMPTRACE_H
#define OMPTRACE_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

struct omptrace_functions {
    uint32_t version;
    void (*begin)(const char *domain, const char *name);
    void (*end)(const char *domain);
    void (*frame_begin)(const char *domain);
    void (*frame_end)(const char *domain);
    void (*mark)(const char *domain, const char *name);
    void (*count)(const char *domain, const char *name, int64_t value);
};

/* The tracer's functions, or NULL. Two threads may both look them up: they find the same. */
static inline const struct omptrace_functions *omptrace_functions_of_tracer(void) {
    enum { UNKNOWN, KNOWN, VERSION = 1 };
    static const struct omptrace_functions *functions;
    static int state = UNKNOWN;
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == UNKNOWN) {
        const char *path = getenv("OMPTRACE_ANNOTATION_LIBRARY");
        void *library = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
        union {
            void *found;
            const struct omptrace_functions *(*function)(uint32_t);
        } annotations = {library ? dlsym(library, "omptrace_annotations") : NULL};
        if (annotations.found) __atomic_store_n(&functions, annotations.function(VERSION), __ATOMIC_RELAXED);
        __atomic_store_n(&state, KNOWN, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&functions, __ATOMIC_RELAXED);
}

static inline void omptrace_begin(const char *domain, const char *name) {
    const struct omptrace_functions *tracer = omptrace_functions_of_tracer();
    if (tracer) tracer->begin(domain, name);
}

static inline void omptrace_end(const char *domain) {
    const struct omptrace_functions *tracer = omptrace_functions_of_tracer();
    if (tracer) tracer->end(domain);
}

static inline void omptrace_frame_begin(const char *domain) {
    const struct omptrace_functions *tracer = omptrace_functions_of_tracer();
    if (tracer) tracer->frame_begin(domain);
}

static inline void omptrace_frame_end(const char *domain) {
    const struct omptrace_functions *tracer = omptrace_functions_of_tracer();
    if (tracer) tracer->frame_end(domain);
}

static inline void omptrace_mark(const char *domain, const char *name) {
    const struct omptrace_functions *tracer = omptrace_functions_of_tracer();
    if (tracer) tracer->mark(domain, name);
}

static inline void omptrace_count(const char *domain, const char *name, int64_t value) {
    const struct omptrace_functions *tracer = omptrace_functions_of_tracer();
    if (tracer) tracer->count(domain, name, value);
}

#ifdef __cplusplus
}

namespace omptrace {
/* A phase until the end of the block. The domain's text must last as long. */
class phase {
    const char *domain;

public:
    phase(const char *domain, const char *name) : domain(domain) { omptrace_begin(domain, name); }
    explicit phase(const char *name) : domain(nullptr) { omptrace_begin(nullptr, name); }
    ~phase() { omptrace_end(domain); }
    phase(const phase &) = delete;
    phase &operator=(const phase &) = delete;
};
}
#endif
#endif
