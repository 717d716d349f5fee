/*
 * asker_shares: what the calls of one key hold of this node, whichever routers forward them (DESIGN
 * section 11): places among its open calls, and large answers on their way. A router knows what a
 * key holds of that router alone; over several of them a key could have a node to itself.
 *
 * Requests name their asker by a number (wire_asker). Those that name none have no share. Only
 * counts: who refuses and answers is service.c.
 */
#ifndef NODE_IO_PROCESS_ASKER_SHARES_H
#define NODE_IO_PROCESS_ASKER_SHARES_H

#include "runtime/base/large_reads.h"
#include "runtime/link/link.h"

/* Answers that wait to leave and are counted; further ones count until they are answered. */
#define ASKER_LEAVING_MAX 4096u

struct asker_shares;

struct asker_shares_options {
    /* Whether an answer is on its way out of this process, or its link is gone. */
    bool (*has_left)(void *user, const struct link_mark *mark);
    void *user;
};

struct asker_shares *asker_shares_new(const struct asker_shares_options *options);
/* CHECK: no call is open. NULL is allowed. */
void asker_shares_free(struct asker_shares *shares);

/* One open call. */
struct asked {
    uint16_t asker; /* 0: not told; it has no share. */
    bool reads;     /* Its answer may be refused for its size. */
    bool holds_place;
    uint16_t method;
    uint32_t expected_bytes; /* Set by asker_begin. */
};

struct asker_limits {
    uint32_t places; /* Of one asker's, for a call of that priority. */
    uint64_t bytes;  /* Of answers to its reads. */
};

enum asker_verdict { ASKER_ADMITTED, ASKER_HOLDS_PLACES, ASKER_HOLDS_BYTES };

/* A call comes in. Anything but ASKER_ADMITTED: its asker holds its share, and nothing was taken.
 * `now_ms` bounds how often it is looked for answers that have left. */
enum asker_verdict asker_begin(struct asker_shares *shares, struct asked *asked,
                               const struct asker_limits *limits, uint64_t now_ms);
/* For each that was admitted; again, it does nothing. `bytes` of an answer wait to leave at `mark`;
 * NULL: no answer does. */
void asker_end(struct asker_shares *shares, struct asked *asked, uint64_t bytes,
               const struct link_mark *mark);

/* What that asker holds. */
uint64_t asker_places(const struct asker_shares *shares, uint16_t asker);
uint64_t asker_bytes(const struct asker_shares *shares, uint16_t asker);

#endif
