#include "runtime/base/check.h"

#include <stdio.h>
#include <stdlib.h>

#define WHERE_SIZE 256u

/* The one variable that is not passed around: a failed check has no one to ask. */
static _Thread_local const struct check_watch *watching;

void check_watch_set(const struct check_watch *watch)
{
    watching = watch;
}

noreturn void check_failed(const char *expression, const char *file, int line)
{
    const struct check_watch *watch = watching;
    char where[WHERE_SIZE];

    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, expression);
    watching = NULL;
    if (watch != NULL) {
        (void)snprintf(where, sizeof where, "%s:%d: %s", file, line, expression);
        watch->failed(watch->user, where);
    }
    abort();
}

void *mem_alloc(size_t size_bytes)
{
    void *pointer = malloc(size_bytes > 0 ? size_bytes : 1);
    CHECK(pointer != NULL);
    return pointer;
}

void *mem_zalloc(size_t size_bytes)
{
    void *pointer = calloc(1, size_bytes > 0 ? size_bytes : 1);
    CHECK(pointer != NULL);
    return pointer;
}

void *mem_realloc(void *pointer, size_t size_bytes)
{
    void *grown = realloc(pointer, size_bytes > 0 ? size_bytes : 1);
    CHECK(grown != NULL);
    return grown;
}
