/*
 * link_fixture: two processes' ends of links inside one test: certificates, two hubs on one loop,
 * and handlers that write down what happened. For tests and benchmarks only.
 */
#ifndef RUNTIME_LINK_LINK_FIXTURE_H
#define RUNTIME_LINK_LINK_FIXTURE_H

#include "runtime/base/test_directory.h"
#include "runtime/link/call.h"

/* Everything the conformance test is run against. nng carries links that are busy, whose input the
 * loop waits for, and others, whose input comes through nng's callbacks. */
struct fixture_mode {
    const char *name;
    enum link_transport transport; /* Of who dials. */
    enum link_transport listens;
    bool tls;
    bool busy;
};

#define FIXTURE_MODES 7u
extern const struct fixture_mode fixture_modes[FIXTURE_MODES];
/* NULL: no such name. */
const struct fixture_mode *fixture_mode_find(const char *name);

enum fixture_method { METHOD_ECHO = 1, METHOD_HOLD, METHOD_DEAF };

#define FIXTURE_HELD_MAX 64u
#define FIXTURE_LOG_SIZE 512u

/* One side. */
struct fixture_end {
    struct link_hub *hub;
    struct calls *calls;
    struct link *link; /* The newest ready one, or NULL. */
    struct hello peer;
    uint32_t ready;
    uint32_t closed;
    uint32_t writable;
    enum link_close_reason reason;
    char text[256];
    uint64_t messages; /* Each carries its number; they must come in order. */
    bool disorder;
    bool pause_when_ready;
    struct call_reply held[FIXTURE_HELD_MAX]; /* Of METHOD_HOLD. */
    uint32_t held_count;
    uint32_t cancels;
    char logged[FIXTURE_LOG_SIZE]; /* Fields of the last link.refused. */
    struct log log;
    bool verbose;
    uint32_t refused_lines; /* connection.refused in the log. */
};

struct fixture {
    const struct fixture_mode *mode;
    struct loop *loop;
    char directory[TEST_DIRECTORY_BYTES]; /* Certificates. */
    struct fixture_end client;
    struct fixture_end server;
    struct link_listener *listener;
    struct link *dialled;
};

/* Makes a directory of certificates: ca, client, server; and the same of another CA in
 * <directory>/other. */
void fixture_certs_make(char ret_directory[TEST_DIRECTORY_BYTES]);
void fixture_certs_remove(const char *directory);
struct tls_config *fixture_tls(const char *directory, enum tls_side side);

/* Options with the mode's TLS (configs owned by the caller), role and cluster filled in. */
struct link_hub_options fixture_options(const struct fixture_mode *mode, struct loop *loop,
                                        const char *directory);
void fixture_options_deinit(struct link_hub_options *options);

void fixture_end_init(struct fixture_end *end, const struct link_hub_options *options);
void fixture_end_deinit(struct fixture_end *end);
struct link_handlers fixture_handlers(struct fixture_end *end);
/* CHECKs that it worked. */
struct link_listener *fixture_listen(struct fixture_end *end, const struct fixture_mode *mode,
                                     uint16_t port);
struct link *fixture_dial(struct fixture_end *end, const struct fixture_mode *mode, uint16_t port,
                          bool paced);

bool fixture_both_ready(void *fixture);

#endif
