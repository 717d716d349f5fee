#include "tools/mutate/mutant_run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXIT_UNUSABLE 99 /* No verdict: tools/mutate/judge.py stops. */

static _Noreturn void stop(const char *what, const char *value)
{
    fprintf(stderr, "%s=%s cannot be used\n", what, value);
    _exit(EXIT_UNUSABLE);
}

/* HOLDFAST_MUTANT=FILE:NUMBER. */
static void activate(const char *wanted)
{
    const char *colon = strrchr(wanted, ':');
    size_t size = colon == NULL ? 0 : (size_t)(colon - wanted);
    unsigned long number = colon == NULL ? 0 : strtoul(colon + 1, NULL, 10);

    for (unsigned i = 0; i < mutant_file_count; i++) {
        const struct mutant_file *file = &mutant_files[i];
        if (strlen(file->name) != size || strncmp(file->name, wanted, size) != 0)
            continue;
        if (number < 1 || number > file->count)
            break;
        *file->active = (unsigned)number;
        return;
    }
    stop("HOLDFAST_MUTANT", wanted);
}

/* HOLDFAST_MUTANT_MARKS=PATH: the marks are that file's bytes, whatever becomes of the process. */
static unsigned char *marks_of(const char *path, size_t size)
{
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CREAT, 0600);
    int kind = path == NULL ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

    if (path != NULL && (fd < 0 || ftruncate(fd, (off_t)size) != 0))
        stop("HOLDFAST_MUTANT_MARKS", path);
    unsigned char *marks = mmap(NULL, size, PROT_READ | PROT_WRITE, kind, fd, 0);
    if (marks == MAP_FAILED)
        stop("HOLDFAST_MUTANT_MARKS", path == NULL ? "" : path);
    if (fd >= 0)
        close(fd);
    return marks;
}

void mutant_start(void)
{
    const char *wanted = getenv("HOLDFAST_MUTANT");
    size_t size = 1;

    for (unsigned i = 0; i < mutant_file_count; i++)
        size += mutant_files[i].count + 1;
    unsigned char *marks = marks_of(getenv("HOLDFAST_MUTANT_MARKS"), size);
    for (unsigned i = 0; i < mutant_file_count; i++) {
        *mutant_files[i].marks = marks;
        marks += mutant_files[i].count + 1;
    }
    if (wanted != NULL)
        activate(wanted);
}
