/*
 * restore: an empty shard is filled with the rows of a backup, by entries of its log, and serves
 * no call meanwhile. docs/backup.md. Deterministic, as all that is applied.
 *
 * What must rise over what the backup knew, before the first row: the generation and the epoch, so
 * that no dot, item UID, incarnation or fence of the restored shard was ever given out before.
 */
#ifndef NODE_CORE_APPLY_RESTORE_H
#define NODE_CORE_APPLY_RESTORE_H

#include "node/core/handler/handler.h"

#define RESTORE_PART_BYTES_MAX 1000000u
/* Before it a restore put rows of totals as the backup has them, though no cut says what a home had
 * pulled by then: what was pulled from a source after its cut stood in the total for ever. Decided
 * when a restore begins. */
#define RESTORE_PULLS_APPLY_VERSION 10u

/* One row of a part: `bytes` as ReadBackup gives them. False: there are no more, or (reader->bad)
 * they are malformed. */
bool restore_row_next(struct reader *reader, struct slice *ret_key, struct slice *ret_value);

/* Before the log. Each refuses what could never be applied. */
NODISCARD err restore_check_id(struct check_context *context, const ProtobufCBinaryData *id);
/* SCHEMA_TOO_NEW: a newer program made it. */
NODISCARD err restore_check_meta(struct check_context *context, const ProtobufCBinaryData *meta);
NODISCARD err restore_check_rows(struct check_context *context, const ProtobufCBinaryData *rows);

/* At apply; ERR_CONFLICT: `refusal` says why, and nothing was changed. */
struct restore_call {
    struct hash128 id;
    struct slice meta_row; /* begin, finish */
};
NODISCARD err restore_begin(struct apply_context *context, const struct restore_call *call);
NODISCARD err restore_put(struct apply_context *context, const struct restore_call *call,
                          uint64_t part, struct slice rows);
NODISCARD err restore_finish(struct apply_context *context, const struct restore_call *call,
                             uint64_t row_count, struct hash128 digest);

/* From here on no row is repaired while others, which it may have to agree with, are still to come.
 */
#define REPAIR_AFTER_RESTORE_APPLY_VERSION 10u
/* An entry of this method while the shard is being restored is to have no effect, by the rules of
 * that apply version. */
bool restore_holds_back(uint32_t method, uint32_t version);

#endif
