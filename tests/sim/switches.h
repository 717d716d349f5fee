/*
 * switches: what of a run is left out. Shrinking finds them; given as options they replay the same
 * short story. All zero: the run that the seed stands for.
 */
#ifndef TESTS_SIM_SWITCHES_H
#define TESTS_SIM_SWITCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of trouble that --without names. */
/* clang-format off */
#define SIM_KINDS(X)                                                                               \
    X(crashes) X(pauses) X(partitions) X(cuts) X(isolations) X(skews) X(jumps) X(outages)          \
    X(etcd_cuts) X(leases) X(unseatings) X(watches) X(coordinators) X(servers) X(stalls)           \
    X(deposals) X(duels) X(rot) X(losses) X(doubles) X(lates) X(txns) X(answers) X(stale_reads)    \
    X(evictions) X(checkpoints) X(policies) X(damages) X(members) X(fulls) X(restores) X(definitions) \
    X(favorites) X(hurries) X(stragglers) X(backups)
/* clang-format on */

enum sim_without {
#define SIM_KIND(name) WITHOUT_##name,
    SIM_KINDS(SIM_KIND)
#undef SIM_KIND
        WITHOUTS
};

#define SWITCHES_TROUBLES_MAX 1024u
#define SWITCHES_TEXT_BYTES   2048u

struct sim_switches {
    uint64_t without;                             /* Bits: enum sim_without. */
    uint64_t skipped[SWITCHES_TROUBLES_MAX / 64]; /* Troubles that do not happen, by number. */
    uint32_t nodes, shards, players, servers;     /* 0: as the seed says. */
    uint64_t events_max;                          /* 0: to the end. */
    const char *forbidden;                        /* A counter that breaks the run; NULL: none. */
};

const char *switches_kind_name(enum sim_without kind);
bool switches_skip(const struct sim_switches *switches, uint32_t trouble);
void switches_set_skip(struct sim_switches *switches, uint32_t trouble, bool skip);
/* Whether the run is another one than the seed's own. */
bool switches_any(const struct sim_switches *switches);
/* Takes one option and its value; false: it is none of these, or malformed. */
bool switches_option(struct sim_switches *switches, const char *name, const char *value);
/* The options that give these switches, for a run that had so many troubles. */
void switches_print(const struct sim_switches *switches, uint32_t troubles,
                    char ret_text[SWITCHES_TEXT_BYTES]);

#endif
