/* holdfast-cores-sim: seeds of the cores of router and coordinator, each alone. */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"
#include "tests/sim/options.h"

#define SEEDS_MAX 100000000u

struct options {
    uint64_t first, seeds;
    const char *core; /* Alone; NULL: all. */
    const char *room; /* Likewise. */
    bool no_reach;
    bool list; /* Say which rooms there are, and run none. */
};

/* What a signal or a failed check has to tell; a process runs one seed at a time. */
static struct rsim *running;

static void tell_broken(const struct rsim *sim, const char *text)
{
    printf("{\"seeds\":1,\"violations\":1,\"failed\":[%" PRIu64 "],\"broken\":\"%s: ", sim->seed,
           sim->room);
    for (const char *at = text; *at != '\0'; at++)
        putchar(*at == '"' || *at == '\\' || (unsigned char)*at < ' ' ? '\'' : *at);
    printf("\"}\n");
    (void)fflush(stdout);
}

void rsim_broken(struct rsim *sim, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tell_broken(sim, text);
    _exit(1);
}

static void check_told(void *user, const char *where)
{
    (void)user;
    tell_broken(running, where);
}

static void signal_told(int number)
{
    tell_broken(running, number == SIGSEGV ? "bad memory" : "the process died");
    _exit(1);
}

uint64_t rsim_next(struct rsim *sim)
{
    uint64_t x = sim->random += 0x9e3779b97f4a7c15u; /* Splitmix64 (Vigna). */

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t rsim_between(struct rsim *sim, uint64_t low, uint64_t high)
{
    CHECK(low <= high);
    return low + rsim_next(sim) % (high - low + 1);
}

bool rsim_chance(struct rsim *sim, uint32_t per_hundred)
{
    return rsim_between(sim, 0, 99) < per_hundred;
}

uint64_t rsim_about(struct rsim *sim, uint64_t at)
{
    return at - 1 + rsim_between(sim, 0, 2);
}

void rsim_refused(struct rsim *sim, Holdfast__V1__ErrorCode code, const char *field)
{
    const Holdfast__V1__ErrorDetail *detail = &sim->detail;

    PROMISE(sim, detail->code == code, "refused with the code %d, not %d: %s", (int)detail->code,
            (int)code, detail->message);
    PROMISE(sim, detail->message != NULL && detail->message[0] != 0, "a refusal says nothing");
    if (field != NULL)
        PROMISE(sim, detail->field != NULL && strcmp(detail->field, field) == 0,
                "the refusal is about \"%s\", not \"%s\"", detail->field, field);
}

static bool is_wanted(const struct options *options, const char *core, const char *room)
{
    return (options->room == NULL || room == NULL || strcmp(options->room, room) == 0) &&
           (options->core == NULL || strcmp(options->core, core) == 0);
}

static const struct {
    const char *core, *name;
    void (*run)(struct rsim *sim);
} rooms[] = {
#define RSIM_ROOM(name) { "router", #name, room_##name },
    RSIM_ROUTER_ROOMS(RSIM_ROOM)
#undef RSIM_ROOM
#define RSIM_ROOM(name) { "coordinator", #name, room_##name },
        RSIM_COORDINATOR_ROOMS(RSIM_ROOM)
#undef RSIM_ROOM
#define RSIM_ROOM(name) { "node", #name, room_##name },
            RSIM_NODE_ROOMS(RSIM_ROOM)
#undef RSIM_ROOM
#define RSIM_ROOM(name) { "coordinator", #name, room_##name },
                RSIM_COORDINATOR_LATER(RSIM_ROOM)
#undef RSIM_ROOM
#define RSIM_ROOM(name) { "node", #name, room_##name },
                    RSIM_NODE_LATER(RSIM_ROOM)
#undef RSIM_ROOM
#define RSIM_ROOM(name) { "router", #name, room_##name },
                        RSIM_ROUTER_LATER(RSIM_ROOM)
#undef RSIM_ROOM
};

static void run_seed(const struct options *options, uint64_t seed, struct rsim_counts *counts)
{
    struct rsim sim = { .seed = seed, .counts = *counts };

    running = &sim;
    for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
        sim.room = rooms[i].name;
        sim.random = seed * 1000003u + i;
        if (!is_wanted(options, rooms[i].core, sim.room))
            continue;
        rooms[i].run(&sim);
        arena_reset(&sim.arena);
    }
    arena_deinit(&sim.arena);
    *counts = sim.counts;
}

static uint32_t report(const struct options *options, const struct rsim_counts *counts)
{
    bool all = !options->no_reach && options->room == NULL;
    uint32_t never = 0;
    const char *comma = "", *core = "router";

    printf("{\"seeds\":%" PRIu64 ",\"violations\":0,\"reach\":{", options->seeds);
#define RSIM_FIELD(name)                                                                           \
    printf("%s\"" #name "\":%" PRIu64, comma, counts->name);                                       \
    comma = ",";                                                                                   \
    if (counts->name == 0 && all && is_wanted(options, core, NULL)) {                              \
        fprintf(stderr, "never exercised: " #name "\n");                                           \
        never++;                                                                                   \
    }
    RSIM_ROUTER_REACH(RSIM_FIELD)
    core = "coordinator";
    RSIM_COORDINATOR_REACH(RSIM_FIELD)
    core = "node";
    RSIM_NODE_REACH(RSIM_FIELD)
#undef RSIM_FIELD
    printf("},\"failed\":[],\"broken\":\"\"}\n");
    return never;
}

static struct options parse(char **argv)
{
    struct options options = { .first = 1, .seeds = 1000 };
    const struct sim_option known[] = {
        { .name = "--first", .number = &options.first, .least = 1, .most = SEEDS_MAX },
        { .name = "--seeds", .number = &options.seeds, .least = 1, .most = SEEDS_MAX },
        { .name = "--room", .text = &options.room },
        { .name = "--core", .text = &options.core },
        { .name = "--no-reach", .flag = &options.no_reach },
        { .name = "--list", .flag = &options.list },
    };

    if (!sim_options_read(&(struct sim_options){ .known = known, .count = ARRAY_SIZE(known) },
                          argv)) {
        fprintf(stderr, "holdfast-cores-sim [--first S] [--seeds N] [--core NAME] "
                        "[--room NAME] [--no-reach] [--list]\n");
        exit(2);
    }
    return options;
}

int main(int argc, char **argv)
{
    static const struct check_watch watch = { .failed = check_told };
    const struct sigaction died = { .sa_handler = signal_told };
    const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    static char out[1 << 16];
    struct rsim_counts counts = { 0 };

    (void)argc;
    const struct options options = parse(argv);
    (void)setvbuf(stdout, out, _IOFBF, sizeof out);
    for (size_t i = 0; i < ARRAY_SIZE(rooms) && options.list; i++)
        printf("%s %s\n", rooms[i].core, rooms[i].name);
    if (options.list)
        return 0;
    check_watch_set(&watch);
    for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
        (void)sigaction(fatal[i], &died, NULL);
    for (uint64_t i = 0; i < options.seeds; i++)
        run_seed(&options, options.first + i, &counts);
    return report(&options, &counts) > 0;
}
