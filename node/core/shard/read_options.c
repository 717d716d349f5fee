#include "node/core/shard/read_options.h"

#include <string.h>

#include "holdfast/v1/operation.pb-c.h"
#include "idl/as_of.h"
#include "idl/method.h"
#include "node/core/codec/proto_scan.h"

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

static void take_token(const char *text, uint32_t shard, struct read_options *options)
{
    struct as_of as_of;

    if (as_of_parse(slice_from_text(text), &as_of) != ERR_OK || as_of.shard != shard) {
        options->wrong_field = "read.at_least";
        options->wrong_limit = AS_OF_LIMIT;
        return;
    }
    options->kind = READ_AT_LEAST;
    options->at_least = (struct dot){ as_of.epoch, as_of.owner, as_of.counter };
}

void read_options_scan(uint32_t method, struct slice request, uint32_t shard,
                       struct read_options *ret_options)
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
    if (options->stale && options->at_least[0] != 0) {
        ret_options->wrong_field = "read.stale";
        ret_options->wrong_limit = "at_least or stale, not both";
    } else if (options->stale) {
        ret_options->kind = READ_STALE;
    } else if (options->at_least[0] != 0) {
        take_token(options->at_least, shard, ret_options);
    }
    holdfast__v1__read_options__free_unpacked(options, NULL);
}
