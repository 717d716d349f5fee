#include "holdfast/v1/backup.pb-c.h"
#include "idl/method.h"
#include "node/rpc/methods.h"

static err backup_get_backup_state_read(struct read_context *context,
                                        const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    static char empty[] = "empty", used[] = "used", restoring[] = "restoring";
    static const struct hash128 none = { { 0 } };
    Holdfast__V1__GetBackupStateResponse *response = (void *)reply;
    const struct meta *meta = context->meta;

    (void)message;
    response->cut = meta->cut_id;
    response->epoch = context->as_of.epoch;
    response->generation = meta->generation;
    response->apply_version = meta->apply_version;
    response->restore_parts = meta->use.parts;
    response->state = meta->use.kind == USE_EMPTY     ? empty
                      : meta->use.kind == USE_SERVING ? used
                                                      : restoring;
    if (!hash128_equal(meta->use.restore_id, none)) {
        response->restore_id.data = arena_alloc(context->arena, sizeof none.bytes);
        response->restore_id.len = sizeof none.bytes;
        for (size_t i = 0; i < sizeof none.bytes; i++)
            response->restore_id.data[i] = meta->use.restore_id.bytes[i];
    }
    return ERR_OK;
}

const struct handler backup_get_backup_state_handler = {
    .method = METHOD_GET_BACKUP_STATE,
    .read = backup_get_backup_state_read,
};
