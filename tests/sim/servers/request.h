/*
 * request: what the requests of game servers have in common. Rows of the workload put them together
 * (workload.h).
 */
#ifndef TESTS_SIM_SERVERS_REQUEST_H
#define TESTS_SIM_SERVERS_REQUEST_H

#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "tests/sim/model/edit.h"

#define REQUEST_IF_VERSION 5   /* The field's number, of every mutation. */
#define SIM_AUTHORITY_SIZE 80u /* "session:" and a token, with its NUL. */

/* Made of an op; they point at each other. */
struct request_parts {
    char player[16], to[16];
    char json[48]; /* An item's attributes. */
    char authority[SIM_AUTHORITY_SIZE];
    Holdfast__V1__CurrencyAmount amount, more[SIM_CURRENCIES - 1];
    Holdfast__V1__CurrencyAmount *amounts[SIM_CURRENCIES];
    size_t amount_count; /* Mostly one. */
    struct edit_parts edits;
    Holdfast__V1__ItemSpec item, more_items[2];
    Holdfast__V1__ItemSpec *items[3];
    size_t item_count; /* Mostly one. */
    Holdfast__V1__ReadOptions read;
    char *uids[3];
    size_t uid_count;
};

/* Of a request that several players take part in. */
struct request_txn_parts {
    char names[2][16];
    char authorities[2][SIM_AUTHORITY_SIZE];
    Holdfast__V1__CurrencyAmount amount, other_amount, more, other_more;
    Holdfast__V1__CurrencyAmount *amounts[2], *other_amounts[2];
    size_t amount_count; /* Of both. */
    char *uids[3], *other_uids[1];
    size_t uid_count;
    Holdfast__V1__TransactionPlayer players[2];
    Holdfast__V1__TransactionPlayer *others[2];
};

/* The fields that every mutation under an op_id has. */
#define REQUEST_HEAD(request, op, parts)                                                           \
    do {                                                                                           \
        REQUEST_HEAD_ANY(request, op, parts);                                                      \
        (request)._if_version_case = (op)->has_if_version ? REQUEST_IF_VERSION : 0;                \
        (request).if_version = (op)->if_version;                                                   \
    } while (false)
/* ... and of those that depend on no version. */
#define REQUEST_HEAD_ANY(request, op, parts)                                                       \
    do {                                                                                           \
        request_say_why(op, &(request).base);                                                      \
        (request).player_id = (parts)->player;                                                     \
        (request).op_id = request_text((op)->id);                                                  \
        (request).attempt = (op)->attempt;                                                         \
        (request).authority = (parts)->authority;                                                  \
    } while (false)

const char *request_currency(uint32_t currency);
/* Of a currency of its own, more than what shards count as little on its way (GOODS_LARGE). */
void request_large(const struct sim_op *op, struct request_parts *parts);
void request_parts_fill(const struct sim_op *op, struct request_parts *ret_parts);
void request_txn_parts_fill(const struct sim_op *op, const struct request_parts *parts,
                            struct request_txn_parts *ret_parts);
/* Protobuf-c wants text that may be changed; it never changes it. */
char *request_text(const char *borrowed);
/* How old the answer to this read may be: as old as a round trip takes, or an election. NULL: not
 * at all. */
Holdfast__V1__ReadOptions *request_read(const struct sim_op *op, struct request_parts *parts);
/* `reason`, if the message has one: mostly none, and now and then one byte too long. */
void request_say_why(const struct sim_op *op, ProtobufCMessage *message);
/* Of a list: now and then its limit, or one more. */
uint32_t request_page(const struct sim_op *op, uint32_t mostly, uint32_t most);
/* Appends. */
void request_pack(const ProtobufCMessage *message, struct buf *out);
/* "p0" to "p9". */
void request_player_name(uint32_t player, char ret_name[16]);

#endif
