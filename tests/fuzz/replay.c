/*
 * replay: main of a fuzz target outside the preset `fuzz`: its own seeds, then every file of the
 * directories it is given, once each. Any crash, CHECK or sanitizer's report ends it.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runtime/base/check.h"
#include "tests/fuzz/fuzz.h"

#define FILE_BYTES_MAX (16u << 20)

static void replay_file(const char *path)
{
    struct buf bytes = { 0 };
    FILE *file = fopen(path, "re");

    if (file == NULL) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    bytes.size = fread(buf_reserve(&bytes, FILE_BYTES_MAX), 1, FILE_BYTES_MAX, file);
    CHECK(ferror(file) == 0);
    fclose(file);
    (void)LLVMFuzzerTestOneInput(bytes.data, bytes.size);
    buf_deinit(&bytes);
}

static unsigned replay_directory(const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);
    unsigned replayed = 0;

    for (int i = 0; i < count; i++) {
        char file[1024];
        if (entries[i]->d_name[0] != '.') {
            (void)snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
            replay_file(file);
            replayed++;
        }
        free(entries[i]);
    }
    free(entries);
    return replayed; /* A directory that is not there holds none. */
}

int main(int argc, char **argv)
{
    (void)LLVMFuzzerInitialize(&argc, &argv);
    unsigned count = fuzz_seed_run();

    for (int i = 1; i < argc; i++) {
        struct stat status;
        if (stat(argv[i], &status) == 0 && S_ISREG(status.st_mode)) {
            replay_file(argv[i]);
            count++;
        } else {
            count += replay_directory(argv[i]);
        }
    }
    printf("%u inputs\n", count);
    return count > 0 ? 0 : 1;
}
