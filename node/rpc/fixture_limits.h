/*
 * fixture_limits: limits that a request to a node meets, as data, and requests at them and beyond.
 * For tests and the simulator of the cores.
 */
#ifndef NODE_RPC_FIXTURE_LIMITS_H
#define NODE_RPC_FIXTURE_LIMITS_H

#include "idl/limit_fixture.h"
#include "node/rpc/fixture_shards.h"

/* A shape beside those of limit_fixture.h: an op_id that was made so many milliseconds from now. */
#define LIMIT_AHEAD ((enum limit_shape)100)

struct limit_row {
    const char *name; /* In idl/limit.h; "": only this method has it. */
    uint32_t method;
    const char *path; /* What is set in the request. */
    enum limit_shape shape;
    uint64_t smallest, largest;
    const char *field, *limit; /* What the error says; [*] is any entry. */
};

extern const struct limit_row limit_rows[];
extern const size_t limit_row_count;

/* Says whether shard 0 refused the request for the row's limit. */
bool limit_is_refused(struct fixture *f, const struct limit_row *row, uint64_t value);
/* What the field at `path` needs beside it to be looked at. */
void limit_fill(struct fixture *f, uint32_t method, const char *path, ProtobufCMessage *request);
/* The field of that name, if the request has such a text. */
void limit_set_text(ProtobufCMessage *request, const char *name, const char *text);

#endif
