#include "router/core/count_ask.h"

#include "router/core/refusal.h"
#include "runtime/base/once.h"
#include "runtime/base/utf8.h"

static err refuse(struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail,
                  const struct refusal_field *field, const char *message)
{
    refusal_make_field(arena, ret_detail, field, message);
    return ERR_INVALID;
}

static bool is_collection(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return text.size > 0 && text.size <= COUNT_COLLECTION_BYTES;
}

struct slice count_ask_collection(const struct count_ask *ask)
{
    bool is_default = ask->collection[0] == 0 && !ask->is_counter;

    return slice_from_text(is_default ? COUNT_COLLECTION_DEFAULT : ask->collection);
}

static err check_target(const struct count_ask *ask, struct once *seen, size_t place,
                        struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct slice target = slice_from_text(ask->targets[place]);
    bool is_sound = target.size > 0 && target.size <= COUNT_TARGET_BYTES && utf8_is_clean(target);
    struct refusal_field field = { .value = target };

    if (is_sound && once_add(seen, ask->targets, place))
        return ERR_OK;
    field.field = ask->is_one ? "target_id" : arena_printf(arena, "target_ids[%zu]", place);
    field.limit =
        is_sound ? "each target once" : "1 to 128 bytes of UTF-8 without control characters";
    return refuse(arena, ret_detail, &field,
                  is_sound ? "a target is there twice" : "a field is no target's id");
}

err count_ask_check(const struct count_ask *ask, struct arena *arena,
                    Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct refusal_field collection = { ask->is_counter ? "counter" : "collection",
                                              "1 to 64 of a-z, 0-9 and _",
                                              slice_from_text(ask->collection) };
    struct once seen = { 0 };
    err e = ERR_OK;

    if (!is_collection(count_ask_collection(ask)))
        return refuse(arena, ret_detail, &collection,
                      ask->is_counter ? "a field is no counter's name"
                                      : "a field is no collection's name");
    if (ask->count == 0 || ask->count > COUNT_TARGETS_MAX) {
        const char *given = arena_printf(arena, "%zu", ask->count);
        return refuse(arena, ret_detail,
                      &(struct refusal_field){ "target_ids", "1 to 200", slice_from_text(given) },
                      "no call names so many targets");
    }
    for (size_t i = 0; i < ask->count && e == ERR_OK; i++)
        e = check_target(ask, &seen, i, arena, ret_detail);
    return e;
}
