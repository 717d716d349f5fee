#include "node/store/halt_note.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 1100u
#define TEXT_SIZE (HALT_PROGRAM_SIZE + HALT_REASON_SIZE + 40u)

static void path_print(const char *directory, uint32_t shard, char ret_path[PATH_SIZE])
{
    (void)snprintf(ret_path, PATH_SIZE, "%s/halted-%" PRIu32, directory, shard);
}

void halt_note_program(char ret_program[HALT_PROGRAM_SIZE])
{
    struct stat file = { 0 };

    (void)!stat("/proc/self/exe", &file);
    (void)snprintf(ret_program, HALT_PROGRAM_SIZE, "%lld-%lld.%09ld", (long long)file.st_size,
                   (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
}

void halt_note_write(const char *directory, uint32_t shard, uint64_t index, const char *reason)
{
    char program[HALT_PROGRAM_SIZE];
    char path[PATH_SIZE];
    char text[TEXT_SIZE];

    halt_note_program(program);
    path_print(directory, shard, path);
    int length = snprintf(text, sizeof text, "%" PRIu64 " %s %.*s\n", index, program,
                          (int)HALT_REASON_SIZE - 1, reason);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (length > 0 && write(fd, text, (size_t)length) == length)
        (void)!fsync(fd);
    (void)close(fd);
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!fsync(fd);
    (void)close(fd);
}

err halt_note_read(const char *directory, uint32_t shard, struct halt_note *ret_note)
{
    struct halt_note note = { 0 };
    char path[PATH_SIZE];
    char text[TEXT_SIZE];

    path_print(directory, shard, path);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return ERR_NOT_FOUND;
    size_t size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[size] = 0;
    if (sscanf(text, "%" SCNu64 " %63s %199[^\n]", &note.index, note.program, note.reason) != 3 ||
        note.index == 0)
        return ERR_CORRUPT;
    *ret_note = note;
    return ERR_OK;
}

void halt_note_remove(const char *directory, uint32_t shard)
{
    char path[PATH_SIZE];

    path_print(directory, shard, path);
    (void)unlink(path);
}
