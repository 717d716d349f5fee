/*
 * peer_choice: which of two links of one replica stays. The older one does while it is alive:
 * a HELLO alone takes nothing over (DESIGN section 11). Pure.
 */
#ifndef NODE_IO_CLUSTER_PEER_CHOICE_H
#define NODE_IO_CLUSTER_PEER_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

/* A link that is alive brings a ping every LINK_PING_PERIOD_MS; after two of them it is silent. */
#define PEER_SILENT_PINGS 2u

enum peer_choice {
    PEER_TAKE,    /* There was none. */
    PEER_REPLACE, /* The older one is dead: close it. */
    PEER_REFUSE   /* The older one stays; the newcomer may come again. */
};

/* The link in use. */
struct peer_held {
    bool is_there;
    uint64_t life; /* As its HELLO said; 0: an older program, which tells none. */
    uint64_t idle_ms;
};

/* `life`: of the newcomer's HELLO. A greater one is the same replica, started again since: its
 * older connection cannot be alive. */
enum peer_choice peer_choose(const struct peer_held *held, uint64_t life);

#endif
