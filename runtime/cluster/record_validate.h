/* record_validate: what a record must be, whether it was read or is to be written. Pure. */
#ifndef RUNTIME_CLUSTER_RECORD_VALIDATE_H
#define RUNTIME_CLUSTER_RECORD_VALIDATE_H

#include "runtime/base/err.h"
#include "runtime/cluster/record_shape.h"

/* Says why, unless ret_why is NULL; returns `e`. */
__attribute__((format(printf, 3, 4))) err record_refuse(err e, struct record_error *ret_why,
                                                        const char *format, ...);

/* What encode and decode both demand; ERR_INVALID says why. For records built from input. */
NODISCARD err cluster_record_validate(const struct cluster_record *record,
                                      struct record_error *ret_why);
NODISCARD err node_record_validate(const struct node_record *record, struct record_error *ret_why);
NODISCARD err shard_record_validate(const struct shard_record *record,
                                    struct record_error *ret_why);
NODISCARD err server_record_validate(const struct server_record *record,
                                     struct record_error *ret_why);
NODISCARD err shard_wish_validate(const struct shard_wish *wish, struct record_error *ret_why);
NODISCARD err coordinator_record_validate(const struct coordinator_record *record,
                                          struct record_error *ret_why);

void node_record_mark_damaged(struct node_record *record, uint32_t shard);
bool node_record_is_damaged(const struct node_record *record, uint32_t shard);
void node_record_mark_quarantined(struct node_record *record, uint32_t shard);
/* The same shards are damaged and quarantined. */
bool node_record_finds_same(const struct node_record *a, const struct node_record *b);
bool node_record_is_quarantined(const struct node_record *record, uint32_t shard);
/* Its replica of the shard is neither damaged nor quarantined. */
bool node_record_may_own(const struct node_record *record, uint32_t shard);
bool replica_is_among(const uint64_t *replica_ids, uint32_t count, uint64_t replica_id);
/* A member or a new member. */
bool shard_record_has_member(const struct shard_record *record, uint64_t replica_id);
/* 1 to 4096 and a power of two. */
bool shard_count_valid(uint32_t shard_count);

#endif
