#include "tests/sim/story.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/check.h"

#define LINES_TOLD  60u
#define LINE_BYTES  512u
#define TRIALS_MAX  250u
#define PLAYER_NONE UINT32_MAX

bool story_tell(uint64_t seed, const struct sim_switches *switches)
{
    struct sim *sim = sim_new(seed, switches, true);

    setvbuf(stdout, NULL, _IOLBF, 0);
    sim_run(sim);
    bool broken = sim->failure[0] != '\0';
    if (broken)
        printf("%s\n", sim->failure);
    else
        printf("%s\n",
               sim->stopped ? "stopped; nothing was broken until here" : "every promise held");
    sim_free(sim);
    return broken;
}

/* ---- which lines concern it ---- */

/* The number behind `word`, which stands after a blank, a colon or at the beginning. */
static uint32_t number_behind(const char *line, const char *word)
{
    size_t size = strlen(word);

    for (const char *at = strstr(line, word); at != NULL; at = strstr(at + 1, word)) {
        char *end;
        unsigned long number = strtoul(at + size, &end, 10);
        if ((at == line || at[-1] == ' ' || at[-1] == ':') && end != at + size &&
            strchr(" :,)\n", *end) != NULL)
            return (uint32_t)number;
    }
    return PLAYER_NONE;
}

/* Of what the failure speaks: said by name, or by the op that is its own. */
static uint32_t player_of(FILE *lines, const char *what)
{
    char line[LINE_BYTES], id[LINE_BYTES] = "";
    const char *op = strstr(what, "op ");
    uint32_t player = number_behind(what, "p");

    if (player != PLAYER_NONE || op == NULL || sscanf(op + 3, "%511s", id) != 1)
        return player;
    rewind(lines);
    while (fgets(line, sizeof line, lines) != NULL) {
        if (strstr(line, id) != NULL && number_behind(line, "p") != PLAYER_NONE)
            return number_behind(line, "p");
    }
    return PLAYER_NONE;
}

static bool concerns(const char *line, uint32_t shard, uint32_t player)
{
    uint32_t of_shard = number_behind(line, "s");
    uint32_t of_player = number_behind(line, "p");

    if (of_shard != PLAYER_NONE && of_shard != shard)
        return false;
    return of_player == PLAYER_NONE || player == PLAYER_NONE || of_player == player;
}

static FILE *tell_to_file(uint64_t seed, const struct sim_switches *switches)
{
    FILE *file = tmpfile();

    CHECK(file != NULL);
    fflush(stdout);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (dup2(fileno(file), STDOUT_FILENO) < 0 || dup2(fileno(file), STDERR_FILENO) < 0)
            _exit(3);
        bool broken = story_tell(seed, switches);
        fflush(stdout); /* Whose buffer no longer ends at each line once it was printed to. */
        _exit(broken);
    }
    CHECK(waitpid(pid, NULL, 0) == pid);
    return file;
}

static void print_end(FILE *file, const struct trial *trial)
{
    char(*lines)[LINE_BYTES] = mem_zalloc(LINES_TOLD * LINE_BYTES);
    uint32_t player = player_of(file, trial->what);
    char line[LINE_BYTES];
    uint64_t count = 0;
    uint64_t left_out = 0;

    rewind(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (concerns(line, trial->shard, player))
            memcpy(lines[count++ % LINES_TOLD], line, sizeof line);
        else
            left_out++;
    }
    uint64_t from = count > LINES_TOLD ? count - LINES_TOLD : 0;
    if (from > 0)
        printf("        ... %" PRIu64 " lines before\n", from);
    for (uint64_t i = from; i < count; i++)
        fputs(lines[i % LINES_TOLD], stdout);
    if (left_out > 0)
        printf("        (%" PRIu64 " lines of other shards and players are left out)\n", left_out);
    free(lines);
}

void story_shrunk(uint64_t seed, const struct sim_switches *switches)
{
    struct sim_switches smallest = *switches;
    char options[SWITCHES_TEXT_BYTES];
    struct trial before, after;

    shrink_try(seed, switches, &before);
    if (!before.failed) {
        printf("seed %" PRIu64 ": every promise held; there is nothing to shrink\n", seed);
        return;
    }
    shrink_seed(seed, TRIALS_MAX, &smallest, &after);
    switches_print(&smallest, after.troubles, options);
    printf("\n==== seed %" PRIu64 ": %s\n", seed, before.what);
    printf("     shrunk from %" PRIu64 " events to %" PRIu64 ": %s\n", before.events, after.events,
           after.what);
    FILE *file = tell_to_file(seed, &smallest);
    print_end(file, &after);
    fclose(file);
    printf("     replay: ./dev sim --seed %" PRIu64 "%s\n", seed, options);
}
