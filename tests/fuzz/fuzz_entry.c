#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/check.h"

struct fuzz_seeds {
    const char *directory; /* NULL: run them instead. */
    unsigned count;
};

static void seed_write(const char *directory, const char *name, struct slice bytes)
{
    char path[512];
    int size = snprintf(path, sizeof path, "%s/%s", directory, name);

    CHECK(size > 0 && (size_t)size < sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK(bytes.size == 0 || write(fd, bytes.data, bytes.size) == (ssize_t)bytes.size);
    CHECK(close(fd) == 0);
}

void fuzz_seed_add(struct fuzz_seeds *seeds, const char *name, struct slice bytes)
{
    seeds->count++;
    if (seeds->directory != NULL)
        seed_write(seeds->directory, name, bytes);
    else
        (void)LLVMFuzzerTestOneInput(bytes.data, bytes.size);
}

void fuzz_seed_add_kind(struct fuzz_seeds *seeds, const char *name, uint8_t kind,
                        struct slice bytes)
{
    struct buf whole = { 0 };

    buf_put_u8(&whole, kind);
    buf_append(&whole, bytes.data, bytes.size);
    fuzz_seed_add(seeds, name, buf_slice(&whole));
    buf_deinit(&whole);
}

unsigned fuzz_seed_run(void)
{
    struct fuzz_seeds seeds = { 0 };

    fuzz_seed(&seeds);
    return seeds.count;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    if (*argc != 3 || strcmp((*argv)[1], "--write-seeds") != 0)
        return 0;
    struct fuzz_seeds seeds = { .directory = (*argv)[2] };
    fuzz_seed(&seeds);
    exit(0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly that size, so that reading one byte too many is seen. */
    uint8_t *bytes = mem_alloc(size + 1);

    if (size > 0)
        memcpy(bytes, data, size);
    bytes = mem_realloc(bytes, size > 0 ? size : 1);
    fuzz_one((struct slice){ bytes, size });
    free(bytes);
    return 0;
}
