#include <string.h>

#include "holdfast/v1/backup.pb-c.h"
#include "idl/method.h"
#include "node/core/apply/restore.h"
#include "node/rpc/methods.h"

static err backup_begin_restore_check(struct check_context *context, ProtobufCMessage *message)
{
    const Holdfast__V1__BeginRestoreRequest *request = (const void *)message;

    err e = restore_check_id(context, &request->restore_id);
    return e == ERR_OK ? restore_check_meta(context, &request->meta) : e;
}

static err backup_begin_restore_handle(struct apply_context *context,
                                       const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__V1__BeginRestoreRequest *request = (const void *)message;
    Holdfast__V1__BeginRestoreResponse *response = (void *)reply;
    struct restore_call call = { .meta_row = { request->meta.data, request->meta.len } };

    memcpy(call.id.bytes, request->restore_id.data, sizeof call.id.bytes);
    err e = restore_begin(context, &call);
    response->parts = context->meta->use.parts;
    response->finished = context->meta->use.kind == USE_SERVING;
    return e;
}

const struct handler backup_begin_restore_handler = {
    .method = METHOD_BEGIN_RESTORE,
    .check = backup_begin_restore_check,
    .handle = backup_begin_restore_handle,
};
