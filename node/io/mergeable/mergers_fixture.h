/*
 * mergers_fixture: three members of a shard in one process and one that may take a place, each with
 * a disk of its own, and a network that may be cut.
 */
#ifndef NODE_IO_MERGEABLE_MERGERS_FIXTURE_H
#define NODE_IO_MERGEABLE_MERGERS_FIXTURE_H

#include "holdfast/v1/document.pb-c.h"
#include "holdfast/v1/error.pb-c.h"
#include "node/io/mergeable/mergers.h"
#include "runtime/base/test_directory.h"

#define MEMBERS     4u /* Three of a shard, and one that takes a place. */
#define SHARD       1u
#define PATIENCE_MS 20000u
#define WRITES_MS   10000u
#define HEAD_BOOT   25u /* Where a message has its sender's boot. */

struct world;

struct member {
    struct world *world;
    uint64_t id;
    char directory[TEST_DIRECTORY_BYTES + 32];
    struct mergers *mergers;          /* NULL: it is down. */
    struct erasures *erasures;        /* What its strict log says, */
    struct mergers_restored restored; /* also of restores. */
    struct space *space;              /* NULL: its disk always has room. */
};

/* The answer to the last call. */
struct answered {
    bool is_there;
    enum reply_status status;
    struct buf body;
};

struct message {
    struct message *next;
    uint64_t from, to;
    struct buf bytes;
};

struct world {
    struct loop *loop;
    char directory[TEST_DIRECTORY_BYTES];
    struct member members[MEMBERS];
    struct message *first, **last; /* On their way. */
    struct loop_hook hook;
    uint64_t old;                  /* Whose program knows no documents. */
    uint64_t cut;                  /* Whom no message reaches, and none leaves. */
    uint32_t large, lose_large;    /* Messages of a MiB; so many of the next ones are lost. */
    bool large_twice;              /* They come twice. */
    uint64_t heard_boots[MEMBERS]; /* Of what each sent last. */
    uint64_t boot;
    uint64_t leave_wait_ms;
    uint64_t ops;
    struct living living; /* All members know the same game servers. */
    struct rep_record record;
    struct answered answered;
};

extern const struct log world_log; /* Of members: nothing is written. */
void world_define(struct mergers *mergers);
void world_start(struct world *w, uint32_t place);
void world_stop(struct world *w, uint32_t place);
void world_tell_all(struct world *w);
int world_setup(void **state);
int world_teardown(void **state);
bool world_has_answer(void *user);
enum reply_status world_call(struct world *w, uint32_t place, uint32_t method,
                             const ProtobufCMessage *message);
/* The last answer is a refusal. */
void world_refused_as(const struct world *w, Holdfast__V1__ErrorCode code);
enum reply_status world_put(struct world *w, uint32_t place, const char *key, const char *json);
/* How many siblings there are of it; 0: there is none. */
size_t world_count(struct world *w, uint32_t place, const char *key,
                   Holdfast__V1__DocumentConsistency consistency);
void world_eventually(struct world *w, uint32_t place, const char *key, size_t wanted);
size_t world_count_any(struct world *w, uint32_t place, const char *key);
/* How many documents a list of the entity has. */
size_t world_listed(struct world *w, uint32_t place);
/* The member's strict log says so of player 7. */
void world_erased(struct world *w, uint32_t place, uint64_t number, bool hides, bool purges);
enum reply_status world_set_presence(struct world *w, uint32_t place, const char *player,
                                     const char *incarnation);
bool world_is_online(struct world *w, uint32_t place, const char *player);
uint64_t world_presences(struct world *w, uint32_t place);
void world_wait_for_presences(struct world *w, uint64_t wanted);
/* The n-th name, from `from` on, whose shard the members have, or have not. */
void world_name_player(bool here, unsigned from, char ret_name[16]);
/* 'r' a response, 'e' an error, in the order of the answer. */
void world_results(const struct world *w, char ret_kinds[16]);

#endif
