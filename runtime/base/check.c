#include "runtime/base/check.h"

#include <stdio.h>
#include <stdlib.h>

noreturn void check_failed(const char *expression, const char *file, int line)
{
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, expression);
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
