#include "router/core/metadata_wire.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "idl/limit.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/cluster/metadata_rule.h"

#define SLOTS       512u /* Twice as many as targets of a question, and more. */
#define ENTRIES_MAX 1000u

/* ---- the question ---- */
void metadata_question_print(const struct metadata_question *question, struct buf *out)
{
    json_t *root = json_object(), *list = json_array();

    json_object_set_new(
        root, "collection",
        json_stringn((const char *)question->collection.data, question->collection.size));
    for (size_t i = 0; i < question->count; i++)
        json_array_append_new(
            list, json_stringn((const char *)question->targets[i].data, question->targets[i].size));
    json_object_set_new(root, "targetIds", list);
    char *text = json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER);
    CHECK(text != NULL);
    buf_put_text(out, text);
    free(text);
    json_decref(root);
}

/* ---- the answer ---- */
/* Targets of the question, by their ids. */
struct index {
    const struct metadata_question *question;
    uint16_t slots[SLOTS]; /* Places from 1; 0: none. */
};

static void index_fill(struct index *index, const struct metadata_question *question)
{
    CHECK(question->count < SLOTS / 2);
    *index = (struct index){ .question = question };
    for (size_t i = 0; i < question->count; i++) {
        uint64_t at = hash_u64(question->targets[i]);
        while (index->slots[at % SLOTS] != 0)
            at++;
        index->slots[at % SLOTS] = (uint16_t)(i + 1);
    }
}

static bool index_find(const struct index *index, struct slice target, size_t *ret_place)
{
    for (uint64_t at = hash_u64(target); index->slots[at % SLOTS] != 0; at++) {
        *ret_place = index->slots[at % SLOTS] - 1u;
        if (slice_equal(index->question->targets[*ret_place], target))
            return true;
    }
    return false;
}

/* A text member; empty where there is none. False: it is something else. */
static bool text_of(const json_t *object, const char *name, struct slice *ret_text)
{
    const json_t *value = json_object_get(object, name);

    *ret_text = (struct slice){ (const uint8_t *)"", 0 };
    if (value == NULL || json_is_null(value))
        return true;
    if (!json_is_string(value))
        return false;
    *ret_text =
        (struct slice){ (const uint8_t *)json_string_value(value), json_string_length(value) };
    return memchr(ret_text->data, 0, ret_text->size) == NULL;
}

static char *copy(struct arena *arena, struct slice text)
{
    char *copied = arena_alloc(arena, text.size + 1);

    if (text.size > 0)
        memcpy(copied, text.data, text.size);
    copied[text.size] = '\0';
    return copied;
}

static bool attributes_of(const json_t *object, struct arena *arena, char **ret_text)
{
    const json_t *value = json_object_get(object, "attributes");

    *ret_text = copy(arena, SLICE_LITERAL("{}"));
    if (value == NULL || json_is_null(value))
        return true;
    if (!json_is_object(value))
        return false;
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
    bool good = text != NULL && strlen(text) <= LIMIT_METADATA_MORE_BYTES;
    if (good)
        *ret_text = copy(arena, slice_from_text(text));
    free(text);
    return good;
}

/* False: it breaks a rule. What was not asked for is passed over. */
static bool take(const struct index *index, const json_t *entry, struct arena *arena,
                 struct metadata_answer *answer)
{
    Holdfast__V1__TargetMetadata *told = arena_alloc(arena, sizeof *told);
    struct slice target, title, url;
    size_t place;

    holdfast__v1__target_metadata__init(told);
    if (!json_is_object(entry) || !text_of(entry, "targetId", &target))
        return false;
    if (!index_find(index, target, &place))
        return true;
    if (!text_of(entry, "title", &title) || !text_of(entry, "thumbnailUrl", &url) ||
        !metadata_title_is_good(title) || !metadata_url_is_good(url) ||
        !attributes_of(entry, arena, &told->attributes))
        return false;
    told->target_id = copy(arena, target);
    told->title = copy(arena, title);
    told->thumbnail_url = copy(arena, url);
    answer->told[place] = told;
    return true;
}

err metadata_answer_read(const struct metadata_question *question, struct slice json,
                         struct arena *arena, struct metadata_answer *ret_answer,
                         const char **ret_why)
{
    json_t *root = json_loadb((const char *)json.data, json.size, JSON_REJECT_DUPLICATES, NULL);
    const json_t *list = json_object_get(root, "metadata");
    struct index index;

    *ret_answer = (struct metadata_answer){ 0 };
    ret_answer->told = arena_zalloc(arena, (question->count + 1) * sizeof *ret_answer->told);
    *ret_why = NULL;
    if (!json_is_object(root))
        *ret_why = "the answer is no JSON object";
    else if (list != NULL && !json_is_array(list))
        *ret_why = "the answer's member metadata is no array";
    else if (json_array_size(list) > ENTRIES_MAX)
        *ret_why = "the answer has more than 1000 entries";
    index_fill(&index, question);
    for (size_t i = 0; *ret_why == NULL && i < json_array_size(list); i++)
        ret_answer->left_out += !take(&index, json_array_get(list, i), arena, ret_answer);
    json_decref(root);
    return *ret_why == NULL ? ERR_OK : ERR_INVALID;
}
