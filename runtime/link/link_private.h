/* link_private: links and their hub from the inside, for this folder only. */
#ifndef RUNTIME_LINK_LINK_PRIVATE_H
#define RUNTIME_LINK_LINK_PRIVATE_H

#include "runtime/base/refused_log.h"
#include "runtime/base/log_gate.h"
#include "runtime/link/link.h"
#include "runtime/link/out_queue.h"
#include "runtime/link/wire.h"
#include "runtime/loop/handshakes.h"
#include "runtime/tls/tls_session.h"

#define LINK_TEXT_SIZE TLS_ERROR_SIZE

enum link_state {
    LINK_DOWN,     /* No wire; a dialled link waits for its next attempt. */
    LINK_DIALLING, /* The wire is not connected yet. */
    LINK_GREETING, /* TLS and HELLO. */
    LINK_READY,
    LINK_DRAINING, /* Closed by the user; what was sent is on its way out. */
    LINK_DEAD      /* Freed at the end of the round. */
};

struct link {
    struct link_hub *hub;
    struct link_handlers handlers;
    void *data;
    enum link_state state;
    uint32_t slot;
    uint64_t generation; /* 0: not ready. */
    bool dialled;
    bool paced;
    bool full;       /* ERR_FULL was given; `writable` is owed. */
    bool paused;     /* By the user. */
    bool overflowed; /* So many responses wait that the link must end. */
    enum link_transport transport;
    bool busy;
    char address[LINK_ADDRESS_SIZE];
    struct wire_address target;
    struct loop_timer redial;
    uint32_t backoff_ms;
    uint32_t attempt;
    uint64_t phase_ms; /* When the state was entered. */
    uint64_t heard_ms;
    struct hello peer;
    struct identity identity; /* Role 0: none. */
    uint32_t roles;           /* Of its listener; 0: all. */
    struct hello expected;    /* Role, replica id and name; 0 and "": any. */

    /* Of accepted ones. */
    struct turnstile_place place;
    enum turnstile_cause cause; /* Why it went before it was ready. */
    bool heard;                 /* Something came. */
    bool awaiting;              /* TLS: the first record is not whole, or waits for its turn. */
    struct buf first;           /* While awaiting: what came. */

    struct wire *wire;   /* NULL: none. */
    uint64_t wire_count; /* Tells whether a callback has changed the wire. */
    bool writing;
    struct tls_session *tls; /* NULL: plain. */
    struct frame_decoder decoder;
    struct frame_decoder parts; /* Of the stream inside PART frames. */
    uint64_t parts_taken;       /* Bytes of it that the peer has no new credit for yet. */
    struct out_queue out;       /* Frames not handed over. */
    struct buf part;            /* A PART on its way into the session. */
    struct buf plain;           /* Without TLS: on its way to the wire. */
    uint64_t sent_position;     /* Of the calls' lane. */
    uint64_t handed_position;
    uint64_t large_sent, large_handed; /* The same of large answers. */

    /* Lost while greeting, but the peer shall learn why first. */
    bool parting;
    enum link_close_reason parting_reason;
    char parting_text[LINK_TEXT_SIZE];

    /* Pacing. */
    struct loop_timer hold;
    uint32_t held;        /* Requests in `out`. */
    uint64_t outstanding; /* Requests sent and not answered, as far as one can see. */
    bool urgent;          /* Something in `out` does not wait. */

    bool dirty; /* In the hub's list of links to flush. */
    struct link *next_dirty;
    struct link *next_dead;
};

struct link_listener {
    struct link_hub *hub;
    struct wire_listener *wire;
    enum link_transport transport;
    uint32_t roles;
    struct link_handlers handlers;
    struct link_listener *next;
};

struct link_hub {
    struct loop *loop;
    const struct log *log;
    struct hello self;
    char cluster[IDENTITY_CLUSTER_SIZE_MAX + 1];
    enum link_names names;
    bool (*admits)(uint8_t self, uint8_t peer, uint8_t kind, uint16_t method);
    struct counter *refusals[LINK_REFUSALS]; /* NULL: not counted there. */
    struct log_gate refused_gates[LINK_REFUSALS];
    struct log_gate failed_gates[LINK_CLOSED_REFUSED + 1]; /* Of accepted links. */
    struct tls_config *tls_client;
    struct tls_config *tls_server;
    uint32_t body_size_max;
    uint32_t out_bytes_max;
    uint32_t link_count_max;
    uint32_t ping_period_ms;
    uint32_t silent_close_ms;
    struct budget *answers; /* Borrowed; NULL: not counted. */
    struct wire_context context;
    struct loop_hook round_end;
    struct loop_timer tick;
    uint64_t tick_ms;
    uint64_t generation;
    struct link **slots; /* link_count_max of them; NULL is free. */
    uint32_t link_count;
    struct link *dirty;
    struct link *dead;
    struct link_listener *listeners;
    struct link_stats stats;
    struct turnstile *turnstile;
    struct handshakes handshakes;
    struct refused_log refused;
};

/* ---- link_slot.c ---- */
/* NULL: link_count_max is reached. */
struct link *link_new(struct link_hub *hub, const struct link_handlers *handlers,
                      const char *address);
/* From DOWN: out of the hub, freed at the end of the round. */
void link_bury(struct link *link);
void link_mark_dirty(struct link *link);

/* ---- link_flow.c ---- */
/* The wire is connected: TLS and HELLO begin. */
void link_greet(struct link *link, struct wire *wire);
/* Ends the connection, tells the user, dials again later or buries. */
void link_lose(struct link *link, enum link_close_reason reason, const char *text);
/* Puts out one that has left the turnstile, and is not ready. */
void link_put_out(struct turnstile_place *place, enum turnstile_cause cause);
/* Its handshake may begin. For handshakes.h. */
void link_shake(void *hub, struct turnstile_place *place);
void link_send_ping(struct link *link);
void link_set_state(struct link *link, enum link_state state);
/* Hands to the wire what may leave now; also goes on with input after a pause. */
void link_flush(struct link *link);
size_t link_queued_bytes(const struct link *link);
extern const struct wire_events link_wire_events;

/* ---- link_hello.c ---- */
/* HELLO came: whether it is admitted, and if not, what is said to whom. */
struct link_verdict {
    enum link_refusal refusal;
    char ours[IDENTITY_TEXT_SIZE], theirs[IDENTITY_TEXT_SIZE];
};
void link_judge_hello(struct link *link, struct link_verdict *ret_verdict);
/* Logs an error if our own certificate is not ours: others would refuse us. */
void link_check_own(const struct link_hub *hub);
/* Counts it, and logs it once a minute and cause. */
void link_note_refusal(struct link *link, const struct link_verdict *verdict);
const char *link_refusal_field(enum link_refusal refusal);

/* ---- link_dial.c ---- */
/* An accepted one takes its place. False: established links fill all of them. */
bool link_enter(struct link *link);

#endif
