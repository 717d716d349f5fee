#include "tests/sim/shrink.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/check.h"

/* ---- one run ---- */
static void run(uint64_t seed, const struct sim_switches *switches, struct trial *trial)
{
    struct sim *sim = sim_new(seed, switches, false);

    sim->progress = &trial->events;
    sim_run(sim);
    trial->failed = sim->failure[0] != '\0';
    memcpy(trial->what, sim->failure, sizeof trial->what);
    trial->shard = sim->failed_shard;
    trial->events = sim->counts.events;
    trial->troubles = sim->troubles;
    sim_free(sim);
}

/* The last line that a process that died left. */
static void read_last_line(FILE *file, char *ret_line, size_t size)
{
    char line[SIM_TEXT_BYTES];

    rewind(file);
    snprintf(ret_line, size, "the process died");
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strstr(line, "check failed") != NULL)
            snprintf(ret_line, size, "%s", line);
    }
}

void shrink_try(uint64_t seed, const struct sim_switches *switches, struct trial *ret_trial)
{
    FILE *said = tmpfile();
    struct trial *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;

    CHECK(said != NULL && shared != MAP_FAILED);
    memset(shared, 0, sizeof *shared);
    fflush(stdout);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (dup2(fileno(said), STDERR_FILENO) < 0)
            _exit(3);
        run(seed, switches, shared);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    *ret_trial = *shared;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        ret_trial->failed = true;
        ret_trial->events++; /* The one it died of was not counted. */
        ret_trial->troubles = SWITCHES_TROUBLES_MAX;
        read_last_line(said, ret_trial->what, sizeof ret_trial->what);
    }
    munmap(shared, sizeof *shared);
    fclose(said);
}

/* ---- the same failure ---- */

/* The words of a failure without those that hold numbers, names or ids. */
static void signature(const char *what, char ret_text[SIM_TEXT_BYTES])
{
    size_t used = 0;

    while (*what != '\0') {
        size_t size = strcspn(what, " ");
        bool plain = true;
        for (size_t i = 0; i < size; i++)
            plain &= !isdigit((unsigned char)what[i]);
        for (size_t i = 0; i < size && plain; i++)
            ret_text[used++] = what[i];
        what += size + (what[size] == ' ');
    }
    ret_text[used] = '\0';
}

static bool same_failure(const struct trial *a, const struct trial *b)
{
    char texts[2][SIM_TEXT_BYTES];

    if (!a->failed || !b->failed)
        return false;
    signature(a->what, texts[0]);
    signature(b->what, texts[1]);
    return strcmp(texts[0], texts[1]) == 0;
}

struct shrinker {
    uint64_t seed;
    uint32_t trials_left;
    struct sim_switches best;
    struct trial trial; /* Of `best`. */
};

/* Keeps `candidate` if it fails in the same way, and not much later. */
static bool keeps(struct shrinker *s, const struct sim_switches *candidate)
{
    struct trial trial;

    if (s->trials_left == 0)
        return false;
    s->trials_left--;
    shrink_try(s->seed, candidate, &trial);
    if (!same_failure(&trial, &s->trial) || trial.events > s->trial.events + s->trial.events / 4)
        return false;
    s->best = *candidate;
    s->trial = trial;
    return true;
}

/* ---- what to leave out ---- */
static void try_number(struct shrinker *s, size_t offset, const uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sim_switches candidate = s->best;
        memcpy((char *)&candidate + offset, &numbers[i], sizeof numbers[i]);
        if (keeps(s, &candidate))
            return;
    }
}

static void try_sizes(struct shrinker *s)
{
    static const uint32_t nodes[] = { 1, 3 };
    static const uint32_t shards[] = { 1, 2 };
    static const uint32_t players[] = { 1, 2, 4 };
    static const uint32_t servers[] = { 1, 2, 3 };

    try_number(s, offsetof(struct sim_switches, nodes), nodes, ARRAY_SIZE(nodes));
    try_number(s, offsetof(struct sim_switches, shards), shards, ARRAY_SIZE(shards));
    try_number(s, offsetof(struct sim_switches, players), players, ARRAY_SIZE(players));
    try_number(s, offsetof(struct sim_switches, servers), servers, ARRAY_SIZE(servers));
}

static void try_kinds(struct shrinker *s)
{
    struct sim_switches candidate = s->best;

    candidate.without = (1ull << WITHOUTS) - 1;
    if (keeps(s, &candidate))
        return;
    for (uint32_t kind = 0; kind < WITHOUTS; kind++) {
        candidate = s->best;
        candidate.without |= 1ull << kind;
        if (candidate.without != s->best.without)
            (void)keeps(s, &candidate);
    }
}

/* Halves, quarters, ... down to single troubles (Zeller and Hildebrandt, ddmin, 2002). */
static void try_troubles(struct shrinker *s)
{
    uint32_t troubles = s->trial.troubles;

    if (troubles > SWITCHES_TROUBLES_MAX / 8)
        troubles = SWITCHES_TROUBLES_MAX / 8;
    for (uint32_t size = troubles; size > 0; size /= 2) {
        for (uint32_t at = 0; at < troubles; at += size) {
            struct sim_switches candidate = s->best;
            for (uint32_t i = at; i < at + size; i++)
                switches_set_skip(&candidate, i, true);
            if (memcmp(&candidate, &s->best, sizeof candidate) != 0)
                (void)keeps(s, &candidate);
        }
    }
}

void shrink_seed(uint64_t seed, uint32_t trials_max, struct sim_switches *switches,
                 struct trial *ret_trial)
{
    struct shrinker s = { .seed = seed, .trials_left = trials_max, .best = *switches };

    shrink_try(seed, &s.best, &s.trial);
    if (s.trial.failed) {
        try_sizes(&s);
        try_kinds(&s);
        try_troubles(&s);
        try_sizes(&s);
        try_kinds(&s);
        /* It ends where it breaks. */
        struct sim_switches candidate = s.best;
        candidate.events_max = s.trial.events;
        (void)keeps(&s, &candidate);
    }
    *switches = s.best;
    *ret_trial = s.trial;
}
