/* load_op: the requests a load run sends, as Connect JSON, and what it reads from the answers. */
#ifndef TESTS_BENCH_LOAD_OP_H
#define TESTS_BENCH_LOAD_OP_H

#include <stdbool.h>

#include "runtime/base/buf.h"

/* clang-format off */
/*    name         method called                                                            */
#define LOAD_OPS(X)                                                                         \
    X(GRANT,       "grant",      "one LedgerService/Grant")                                 \
    X(BATCH_GRANT, "batchgrant", "one LedgerService/BatchGrant of --batch grants")          \
    X(READ,        "read",       "one ProfileService/GetProfile")                           \
    X(BATCH_READ,  "batchread",  "one ProfileService/BatchGetProfile of --batch players")   \
    X(START_END,   "startend",   "SessionService/StartSession, then EndSession")
/* clang-format on */

enum load_op {
#define LOAD_ENUM(name, text, meaning) LOAD_##name,
    LOAD_OPS(LOAD_ENUM)
#undef LOAD_ENUM
};

struct load_options {
    const char *host;
    const char *pids;
    const char *api_key;
    const char *currency;
    unsigned port;
    unsigned connections;
    unsigned players;
    unsigned batch;
    enum load_op op;
    double seconds;
    double warm_up_s;
};

/* What one connection remembers between requests. */
struct load_slot {
    unsigned index;
    unsigned turn;
    char player[32];
    char token[96]; /* startend: set while it holds a session. */
};

/* Appends a whole HTTP request. */
void load_op_write(const struct load_options *options, const char *incarnation,
                   struct load_slot *slot, struct buf *out);
/* Appends an HTTP request with this body. */
void load_http_write(const struct load_options *options, const char *method, struct slice body,
                     struct buf *out);
/* Looks at an answer's body; returns how many of the operations in it failed. `body` ends in NUL.
 */
unsigned load_op_read(const struct load_options *options, struct load_slot *slot, unsigned status,
                      const char *body);
/* Operations in one request. */
unsigned load_op_count(const struct load_options *options);
/* Copies the JSON string value behind "name": false when it is not there. */
bool load_json_find(const char *body, const char *name, char *ret_text, size_t capacity);
bool load_op_parse(const char *text, enum load_op *ret_op);
const char *load_op_name(enum load_op op);
uint64_t load_random(void);

#endif
