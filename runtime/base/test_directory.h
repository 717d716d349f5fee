/*
 * test_directory: a place for the files of one unit test. Linked into tests only; whatever goes
 * wrong ends the test.
 */
#ifndef RUNTIME_BASE_TEST_DIRECTORY_H
#define RUNTIME_BASE_TEST_DIRECTORY_H

#define TEST_DIRECTORY_BYTES 64

/* Makes an empty directory of its own under /tmp, with `name` in its name. */
void test_directory_make(const char *name, char ret_path[TEST_DIRECTORY_BYTES]);
/* Removes it and all that is in it, without following links. */
void test_directory_remove(const char *path);

#endif
