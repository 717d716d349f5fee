#include "node/core/shard/read_options.h"

#include <string.h>

#include "holdfast/v1/operation.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/proto_scan.h"

#define FIELD_READ        2u
#define CONSISTENCY(name) HOLDFAST__V1__READ_CONSISTENCY__READ_CONSISTENCY_##name

static bool has_read_options(uint32_t method)
{
    const struct method_info *info = method_find(method);

    if (info == NULL)
        return false;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(info->request, FIELD_READ);
    return field != NULL && strcmp(field->name, "read") == 0;
}

/* Without a whole dot the caller would be told something older, or wait for more, than it thinks.
 */
static void take_dot(const Holdfast__V1__Dot *dot, struct read_options *options)
{
    if (dot == NULL || dot->epoch == 0 || dot->owner == 0 || dot->counter == 0) {
        options->wrong_field = "read.at_least";
        options->wrong_limit = "with AT_LEAST: epoch, owner and counter of an earlier answer's dot";
        return;
    }
    options->kind = READ_AT_LEAST;
    options->at_least = (struct dot){ dot->epoch, dot->owner, dot->counter };
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
    switch (options->consistency) {
    case CONSISTENCY(UNSPECIFIED):
    case CONSISTENCY(STRICT):
        break;
    case CONSISTENCY(STALE):
        ret_options->kind = READ_STALE;
        break;
    case CONSISTENCY(AT_LEAST):
        take_dot(options->at_least, ret_options);
        break;
    default:
        ret_options->wrong_field = "read.consistency";
        ret_options->wrong_limit = "STRICT, AT_LEAST or STALE";
        break;
    }
    holdfast__v1__read_options__free_unpacked(options, NULL);
}
