#include "node/core/read_options.h"

#include <string.h>

#include "holdfast/v1/operation.pb-c.h"
#include "idl/method.h"
#include "node/core/proto_scan.h"

#define FIELD_READ 2u

static bool has_read_options(uint32_t method)
{
    const struct method_info *info = method_find(method);

    if (info == NULL)
        return false;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(info->request, FIELD_READ);
    return field != NULL && strcmp(field->name, "read") == 0;
}

void read_options_scan(uint32_t method, struct slice request, struct read_options *ret_options)
{
    struct slice bytes;

    *ret_options = (struct read_options){ .kind = READ_STRICT };
    if (!has_read_options(method) || !proto_scan_bytes(request, FIELD_READ, &bytes) ||
        bytes.size == 0)
        return;
    Holdfast__V1__ReadOptions *options =
        holdfast__v1__read_options__unpack(NULL, bytes.size, bytes.data);
    if (options == NULL)
        return;
    if (options->consistency == HOLDFAST__V1__READ_CONSISTENCY__READ_CONSISTENCY_STALE) {
        ret_options->kind = READ_STALE;
    } else if (options->consistency == HOLDFAST__V1__READ_CONSISTENCY__READ_CONSISTENCY_AT_LEAST &&
               options->at_least != NULL && options->at_least->epoch != 0) {
        ret_options->kind = READ_AT_LEAST;
        ret_options->at_least = (struct dot){ options->at_least->epoch, options->at_least->owner,
                                              options->at_least->counter };
    }
    holdfast__v1__read_options__free_unpacked(options, NULL);
}
