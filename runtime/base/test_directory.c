#include "runtime/base/test_directory.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/check.h"

#define OPEN_MAX_DIRECTORIES 16 /* While walking down; deeper ones are opened again. */

void test_directory_make(const char *name, char ret_path[TEST_DIRECTORY_BYTES])
{
    int size = snprintf(ret_path, TEST_DIRECTORY_BYTES, "/tmp/holdfast-%s-XXXXXX", name);

    CHECK(size > 0 && size < TEST_DIRECTORY_BYTES);
    CHECK(mkdtemp(ret_path) != NULL);
}

static int remove_item(const char *path, const struct stat *stat, int flag, struct FTW *walk)
{
    (void)stat;
    (void)flag;
    (void)walk;
    return remove(path);
}

void test_directory_remove(const char *path)
{
    CHECK(nftw(path, remove_item, OPEN_MAX_DIRECTORIES, FTW_DEPTH | FTW_PHYS) == 0);
}
