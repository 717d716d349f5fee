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

static void take_options(const Holdfast__V1__ReadOptions *message, uint32_t shard,
                         struct read_options *options)
{
    bool at_least = message->at_least[0] != 0;

    if (at_least + message->stale + (message->max_age_ms != 0) > 1) {
        options->wrong_field = message->stale ? "read.stale" : "read.max_age_ms";
        options->wrong_limit = "one of at_least, max_age_ms and stale";
    } else if (message->max_age_ms > READ_AGE_MS_MAX) {
        options->wrong_field = "read.max_age_ms";
        options->wrong_limit = "1 to 60000, or 0 for a read that is linearizable";
        options->wrong_value = message->max_age_ms;
    } else if (message->stale) {
        options->kind = READ_STALE;
    } else if (at_least) {
        take_token(message->at_least, shard, options);
    } else if (message->max_age_ms != 0) {
        options->kind = READ_AGED;
        options->max_age_ms = message->max_age_ms;
    }
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
    take_options(options, shard, ret_options);
    holdfast__v1__read_options__free_unpacked(options, NULL);
}
