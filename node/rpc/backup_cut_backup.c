#include "holdfast/v1/backup.pb-c.h"
#include "idl/method.h"
#include "node/core/goods/audit.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

/* Ids rise by one a second as a rule; a request for a far greater one would use them up. */
#define CUT_AHEAD_MAX 1000000u

static err backup_cut_backup_check(struct check_context *context, ProtobufCMessage *message)
{
    const Holdfast__V1__CutBackupRequest *request = (const void *)message;

    if (request->cut <= context->meta->cut_id + CUT_AHEAD_MAX)
        return ERR_OK;
    return refuse_unsigned(context->arena, context->refusal, "cut",
                           "at most a million above the shard's", request->cut);
}

static err backup_cut_backup_handle(struct apply_context *context, const ProtobufCMessage *message,
                                    ProtobufCMessage *reply)
{
    const Holdfast__V1__CutBackupRequest *request = (const void *)message;
    Holdfast__V1__CutBackupResponse *response = (void *)reply;

    audit_cut(context->meta, request->cut);
    response->cut = context->meta->cut_id;
    return ERR_OK;
}

const struct handler backup_cut_backup_handler = {
    .method = METHOD_CUT_BACKUP,
    .check = backup_cut_backup_check,
    .handle = backup_cut_backup_handle,
};
