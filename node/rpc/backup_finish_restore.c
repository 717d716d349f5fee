#include <string.h>

#include "holdfast/v1/backup.pb-c.h"
#include "idl/method.h"
#include "node/core/apply/restore.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

static err backup_finish_restore_check(struct check_context *context, ProtobufCMessage *message)
{
    const Holdfast__V1__FinishRestoreRequest *request = (const void *)message;

    err e = restore_check_id(context, &request->restore_id);
    if (e == ERR_OK && request->digest.len != sizeof(struct hash128))
        e = refuse_number(context->arena, context->refusal, "digest", "16 bytes",
                          (int64_t)request->digest.len);
    return e == ERR_OK ? restore_check_meta(context, &request->meta) : e;
}

static err backup_finish_restore_handle(struct apply_context *context,
                                        const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__V1__FinishRestoreRequest *request = (const void *)message;
    struct restore_call call = { .meta_row = { request->meta.data, request->meta.len } };
    struct hash128 digest;

    (void)reply;
    memcpy(call.id.bytes, request->restore_id.data, sizeof call.id.bytes);
    memcpy(digest.bytes, request->digest.data, sizeof digest.bytes);
    return restore_finish(context, &call, request->row_count, digest);
}

const struct handler backup_finish_restore_handler = {
    .method = METHOD_FINISH_RESTORE,
    .check = backup_finish_restore_check,
    .handle = backup_finish_restore_handle,
};
