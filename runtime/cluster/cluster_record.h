/*
 * cluster_record: the records that node, router and coordinator share through etcd, as JSON.
 * Every u64 is a decimal string in JSON (2^53), every u32 a number. Decoding checks every field;
 * fields it does not know are ignored, so that an older process can read a newer one's record.
 * Pure: no I/O.
 *
 * encode: appends to `out`. CHECKs what decode would refuse: never write a bad record.
 * decode: fills *ret_record on ERR_OK only. On ERR_INVALID (or ERR_TOO_LARGE, above
 * CLUSTER_RECORD_SIZE_MAX) `ret_why`, if not NULL, says which record, field, limit and value.
 */
#ifndef RUNTIME_CLUSTER_CLUSTER_RECORD_H
#define RUNTIME_CLUSTER_CLUSTER_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/cluster/incarnation.h"
#include "runtime/cluster/record_shape.h"
#include "runtime/cluster/record_validate.h"

void cluster_record_encode(const struct cluster_record *record, struct buf *out);
NODISCARD err cluster_record_decode(struct slice json, struct cluster_record *ret_record,
                                    struct record_error *ret_why);
void node_record_encode(const struct node_record *record, struct buf *out);
NODISCARD err node_record_decode(struct slice json, struct node_record *ret_record,
                                 struct record_error *ret_why);
void shard_record_encode(const struct shard_record *record, struct buf *out);
NODISCARD err shard_record_decode(struct slice json, struct shard_record *ret_record,
                                  struct record_error *ret_why);
void server_record_encode(const struct server_record *record, struct buf *out);
NODISCARD err server_record_decode(struct slice json, struct server_record *ret_record,
                                   struct record_error *ret_why);
void node_wish_encode(const struct node_wish *wish, struct buf *out);
NODISCARD err node_wish_decode(struct slice json, struct node_wish *ret_wish,
                               struct record_error *ret_why);
void shard_wish_encode(const struct shard_wish *wish, struct buf *out);
NODISCARD err shard_wish_decode(struct slice json, struct shard_wish *ret_wish,
                                struct record_error *ret_why);
void coordinator_record_encode(const struct coordinator_record *record, struct buf *out);
NODISCARD err coordinator_record_decode(struct slice json, struct coordinator_record *ret_record,
                                        struct record_error *ret_why);

#endif
