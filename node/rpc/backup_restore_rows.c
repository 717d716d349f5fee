#include <string.h>

#include "holdfast/v1/backup.pb-c.h"
#include "idl/method.h"
#include "node/core/apply/restore.h"
#include "node/rpc/methods.h"

static err backup_restore_rows_check(struct check_context *context, ProtobufCMessage *message)
{
    const Holdfast__V1__RestoreRowsRequest *request = (const void *)message;

    err e = restore_check_id(context, &request->restore_id);
    return e == ERR_OK ? restore_check_rows(context, &request->rows) : e;
}

static err backup_restore_rows_handle(struct apply_context *context,
                                      const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__V1__RestoreRowsRequest *request = (const void *)message;
    Holdfast__V1__RestoreRowsResponse *response = (void *)reply;
    struct restore_call call = { { { 0 } }, { 0 } };

    memcpy(call.id.bytes, request->restore_id.data, sizeof call.id.bytes);
    err e = restore_put(context, &call, request->part,
                        (struct slice){ request->rows.data, request->rows.len });
    response->parts = context->meta->use.parts;
    return e;
}

const struct handler backup_restore_rows_handler = {
    .method = METHOD_RESTORE_ROWS,
    .check = backup_restore_rows_check,
    .handle = backup_restore_rows_handle,
};
