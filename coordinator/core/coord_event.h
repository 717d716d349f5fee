/* coord_event: what a coordinator is told; one event is one step. */
#ifndef COORDINATOR_CORE_COORD_EVENT_H
#define COORDINATOR_CORE_COORD_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/buf.h"
#include "runtime/cluster/wire.h"

enum coord_event_type {
    COORD_PUT,      /* key, value, create_revision, mod_revision   a record under the prefix     */
    COORD_DELETED,  /* key, mod_revision                            it is gone                    */
    COORD_SYNCED,   /*                                              the copy is complete          */
    COORD_ELECTED,  /* key, create_revision                         own election key              */
    COORD_LOST,     /*                                              or perhaps lost: stop acting  */
    COORD_HALT,     /*                                              etcd went back: do not act    */
    COORD_RESET,    /*                                              it was accepted: begin again  */
    COORD_TXN_DONE, /* ticket, outcome, written, mod_revision       one for each txn action       */
    COORD_CALL_DONE, /* call, status, body                           one for each call action */
    COORD_ASK,    /* call, method, body                           a router's question           */
    COORD_REPORT, /* report                                       borrowed for the step         */
    COORD_TICK    /*                                              every 10 to 100 ms            */
};

enum coord_txn_outcome {
    COORD_TXN_ANSWERED, /* The election key stood; `written` says which writes were carried out. */
    COORD_TXN_DEPOSED,  /* The election key did not stand; nothing was written. */
    COORD_TXN_UNKNOWN   /* No answer, or not sent: the same transaction will be repeated. */
};

struct coord_event {
    enum coord_event_type type;
    uint64_t now_ms;  /* Monotonic; never goes back between events. */
    uint64_t wall_ms; /* ELECTED: this machine's clock, Unix time. Only to date holds. */
    struct slice key;
    struct slice value;
    int64_t create_revision;
    int64_t mod_revision; /* TXN_DONE: the store's revision in the answer. */
    uint64_t ticket;
    enum coord_txn_outcome outcome;
    const bool *written;     /* As many as the transaction's writes. Only with ANSWERED. */
    uint64_t call;           /* ASK: the caller's own number, not 0; coord_answer names it. */
    uint16_t method;         /* ASK: CHANGE_DEFINITION, FIND_DEFINITIONS. */
    enum wire_status status; /* No answer: WIRE_UNKNOWN, never sent: WIRE_UNAVAILABLE. */
    struct slice body;       /* Of the answer; borrowed for the step. */
    const Holdfast__Internal__V1__ReportOwnerRequest *report;
};

#endif
