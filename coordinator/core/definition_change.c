/*
 * definition_change: a caller's change of a definition: judged against the copy, written to etcd,
 * and answered once it is there, or once all shards have it. One is on its way to etcd at a time.
 *
 * The same op_id finds what it made: a caller whose answer was lost, or whose coordinator died,
 * sends the same again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/definition_change.h"
#include "coordinator/core/definition_kind.h"
#include "coordinator/core/definition_send.h"
#include "coordinator/core/definitions.h"
#include "coordinator/core/flight.h"
#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/base/nearest.h"
#include "runtime/base/utf8.h"

#define WAIT_MS_MAX          60000u
#define VERSION_MAX          ((uint64_t)INT64_MAX)
#define AT_MS_MAX            INT64_C(253402300799999) /* The end of the year 9999. */
#define SENTENCE_BYTES       512u
#define VALUE_BYTES          80u
#define RETRY_MS             200u
#define REASON_BYTES_MAX     64u
#define AUTHOR_BYTES_MAX     64u
#define OP_ID_BYTES_MAX      160u
#define CURRENCIES_MAX       64u
#define RULES_OF_SUBJECT_MAX 8u /* What a shard keeps of one player and subject has a limit. */
#define TEXT_SIZE            192u

typedef Holdfast__Internal__V1__ChangeDefinitionRequest change_request;
typedef Holdfast__Internal__V1__ChangeDefinitionResponse change_response;

/* One change while it is judged. */
struct change {
    struct coord *coord;
    struct coord_out *out;
    uint64_t call;
    change_request *request;
    uint32_t kind;
    struct definition *stands; /* Of that kind and name, not deleted; NULL: none. */
};

/* ---- answers ---- */
/* Why a change is refused; texts are copied. */
struct objection {
    Holdfast__V1__ErrorCode code;
    const char *field, *limit, *value, *message;
};

/* "body.currency.max_balance: the definition is out of bounds: expected ..., got "-5"". */
static void sentence_make(const struct objection *why, char ret_text[SENTENCE_BYTES])
{
    bool wrong = why->code == CODE(INVALID_ARGUMENT);
    bool expects = wrong && why->limit[0] != 0, has_value = expects && why->value[0] != 0;
    char value[VALUE_BYTES];

    utf8_snippet(value, sizeof value, slice_from_text(why->value));
    snprintf(ret_text, SENTENCE_BYTES, "%s%s%s%s%s%s%s%s", wrong ? why->field : "",
             wrong ? ": " : "", why->message, expects ? ": expected " : "",
             expects ? why->limit : "", has_value ? ", got \"" : "", has_value ? value : "",
             has_value ? "\"" : "");
}

static bool refuse(struct change *change, const struct objection *why)
{
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    char sentence[SENTENCE_BYTES];

    sentence_make(why, sentence);
    refusal.code = why->code;
    refusal.message = sentence;
    refusal.field = text_lend(why->field);
    refusal.limit = text_lend(why->limit);
    refusal.value = text_lend(why->value);
    if (why->code == CODE(UNAVAILABLE))
        refusal.retry_after_ms = RETRY_MS;
    coord_refusal_put(change->out, change->call, &refusal);
    return false;
}

static bool refuse_later(struct change *change, const char *why)
{
    return refuse(change, &(struct objection){ CODE(UNAVAILABLE), "", "", "", why });
}

/* `version` NULL: there is none to tell of (a trial of a first one is told by `record`). */
static void answer_made(struct coord *coord, struct coord_out *out,
                        const struct definition_wait *wait, const struct definition_version *made,
                        definition_record *record)
{
    change_response response = HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_RESPONSE__INIT;
    definition_record *unpacked = record == NULL ? definition_unpack(made) : NULL;

    response.made = record != NULL ? record : unpacked;
    response.shards_left =
        made != NULL ? definition_left(coord, made->revision) : coord->shard_count;
    response.in_force = response.shards_left == 0;
    response.duplicate = wait->duplicate;
    response.unchanged = wait->unchanged;
    coord_answer_put(out, wait->call, WIRE_OK, &response.base);
    if (unpacked != NULL)
        holdfast__internal__v1__definition_version__free_unpacked(unpacked, NULL);
}

/* ---- judging ---- */
static bool check_wait(struct change *change)
{
    char value[TEXT_SIZE];

    if (change->request->wait_ms <= WAIT_MS_MAX)
        return true;
    snprintf(value, sizeof value, "%u", change->request->wait_ms);
    return refuse(change, &(struct objection){ CODE(INVALID_ARGUMENT), "wait_ms", "0 to 60000",
                                               value, "that is too long to wait" });
}

static bool check_texts(struct change *change)
{
    const change_request *request = change->request;
    const struct {
        const char *field, *text, *limit;
        size_t least, most;
    } texts[] = {
        { "op_id", request->op_id, "1 to 160 bytes", 1, OP_ID_BYTES_MAX },
        { "reason", request->reason, "at most 64 bytes", 0, REASON_BYTES_MAX },
        { "author", request->author, "at most 64 bytes", 0, AUTHOR_BYTES_MAX },
    };
    char value[TEXT_SIZE];

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        size_t size = strlen(texts[i].text);
        if (size >= texts[i].least && size <= texts[i].most)
            continue;
        snprintf(value, sizeof value, "%zu bytes", size);
        return refuse(change,
                      &(struct objection){ CODE(INVALID_ARGUMENT), texts[i].field, texts[i].limit,
                                           value, "a text is too long or missing" });
    }
    return check_wait(change);
}

static bool find_kind(struct change *change)
{
    const change_request *request = change->request;
    const char *near_miss;
    char message[TEXT_SIZE], hint[NEAREST_HINT_BYTES];

    if (request->deed == HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_PUT) {
        change->kind = request->body != NULL ? (uint32_t)request->body->kind_case : 0;
        return change->kind != 0 ||
               refuse(change,
                      &(struct objection){
                          CODE(INVALID_ARGUMENT), "body",
                          "one of currency, collection, counter, rate_rule, event_retention, "
                          "documents and settings",
                          "", "the definition has no body" });
    }
    change->kind = definition_kind_find(request->kind, &near_miss);
    if (change->kind != 0)
        return true;
    snprintf(message, sizeof message, "there is no such kind%s",
             near_miss[0] != 0 ? nearest_hint(slice_from_text(near_miss), hint) : "");
    return refuse(change, &(struct objection){ CODE(INVALID_ARGUMENT), "kind",
                                               "currency, collection, counter, rate_rule, "
                                               "event_retention, documents or settings",
                                               request->kind, message });
}

static void find_stand(struct change *change)
{
    change->stands = definition_named(change->coord, change->kind, change->request->name);
    if (change->stands != NULL && definition_newest(change->stands)->deleted)
        change->stands = NULL;
}

static bool refuse_unknown(struct change *change)
{
    const struct definitions *all = &change->coord->definitions;
    struct nearest nearest;
    char message[TEXT_SIZE], hint[NEAREST_HINT_BYTES];

    nearest_init(&nearest, slice_from_text(change->request->name));
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->list[i]->kind == change->kind && !definition_newest(all->list[i])->deleted)
            nearest_offer_text(&nearest, all->list[i]->name);
    }
    snprintf(message, sizeof message, "there is no such definition%s",
             nearest.name.size > 0 ? nearest_hint(nearest.name, hint) : "");
    return refuse(
        change, &(struct objection){ CODE(NOT_FOUND), "name", "", change->request->name, message });
}

static bool check_version(struct change *change)
{
    uint64_t current = change->stands != NULL ? definition_newest(change->stands)->version : 0;
    char limit[24], value[24];

    if (change->request->_if_version_case ==
            HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST___IF_VERSION__NOT_SET ||
        change->request->if_version == current)
        return true;
    snprintf(limit, sizeof limit, "%" PRIu64, change->request->if_version);
    snprintf(value, sizeof value, "%" PRIu64, current);
    return refuse(change, &(struct objection){ CODE(VERSION_CONFLICT), "if_version", limit, value,
                                               "the definition has another version" });
}

/* What the policy declares counts, too: a shard has room for so many in all. */
static bool has_room_for_currency(const struct coord *coord, const char *name)
{
    Holdfast__V1__Policy *policy =
        holdfast__v1__policy__unpack(NULL, coord->policy.size, coord->policy.data);
    size_t count = policy != NULL ? policy->n_currencies : 0;
    bool listed = false;

    for (uint32_t i = 0; i < coord->definitions.count; i++) {
        const struct definition *definition = coord->definitions.list[i];
        bool also = false;
        if (definition->kind != HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY ||
            definition_newest(definition)->deleted)
            continue;
        for (size_t j = 0; policy != NULL && j < policy->n_currencies; j++)
            also |= strcmp(policy->currencies[j]->name, definition->name) == 0;
        count += !also;
    }
    for (size_t j = 0; policy != NULL && j < policy->n_currencies; j++)
        listed |= strcmp(policy->currencies[j]->name, name) == 0;
    if (policy != NULL)
        holdfast__v1__policy__free_unpacked(policy, NULL);
    return listed || count < CURRENCIES_MAX;
}

/* Rules that stand about that subject. */
static uint32_t rules_about(const struct coord *coord, const char *subject)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < coord->definitions.count; i++) {
        const struct definition *definition = coord->definitions.list[i];
        if (definition->kind != HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE ||
            definition_newest(definition)->deleted)
            continue;
        definition_record *rule = definition_unpack(definition_newest(definition));
        count += strcmp(rule->body->rate_rule->subject, subject) == 0;
        holdfast__internal__v1__definition_version__free_unpacked(rule, NULL);
    }
    return count;
}

static bool check_room(struct change *change, const definition_record *record)
{
    const struct definitions *all = &change->coord->definitions;
    uint64_t bytes = protobuf_c_message_get_packed_size(&record->body->base);
    char value[24];

    snprintf(value, sizeof value, "%" PRIu64, bytes);
    if (bytes > DEFINITION_BODY_BYTES_MAX)
        return refuse(change, &(struct objection){ CODE(INVALID_ARGUMENT), "body", "4000 bytes",
                                                   value, "the body is too large" });
    bytes = definition_bytes(record);
    for (uint32_t i = 0; i < all->count; i++)
        bytes += all->list[i]->number != record->number ? all->list[i]->bytes : 0;
    if (change->stands == NULL && all->count >= DEFINITIONS_MAX)
        return refuse(change,
                      &(struct objection){ CODE(CAPACITY_FULL), "name", "4096", "4096",
                                           "there are 4096 definitions; deleted ones count" });
    snprintf(value, sizeof value, "%" PRIu64, bytes);
    if (bytes > DEFINITIONS_BYTES_MAX)
        return refuse(change,
                      &(struct objection){ CODE(CAPACITY_FULL), "body", "245760", value,
                                           "all definitions together are too large for a shard" });
    if (change->stands == NULL &&
        record->body->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY &&
        !has_room_for_currency(change->coord, record->name))
        return refuse(change, &(struct objection){
                                  CODE(CAPACITY_FULL), "name", "64", "64",
                                  "the policy and the definitions declare 64 currencies already" });
    if (change->stands == NULL &&
        record->body->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE &&
        rules_about(change->coord, record->body->rate_rule->subject) >= RULES_OF_SUBJECT_MAX)
        return refuse(change,
                      &(struct objection){ CODE(CAPACITY_FULL), "body.rate_rule.subject", "8", "8",
                                           "there are 8 rules about that subject already" });
    return true;
}

/* Out of who asks for what: an etcd that lost a definition in a restore gives its number to no
 * other one, whether or not anyone has noticed the restore. And out of how far etcd has come: what
 * was deleted and forgotten has had another number, even under the same op_id. */
static uint64_t number_new(const struct coord *coord, const struct change *change)
{
    const char *op_id = change->request->op_id, *name = change->request->name;
    const struct hash128 kind = { .bytes = { (uint8_t)change->kind } };
    uint64_t reached = definitions_revision(coord);
    struct hash128 asked = hash_chain(kind, slice_from_text(op_id), slice_from_text(name));
    asked = hash_chain(asked, (struct slice){ (const uint8_t *)&reached, sizeof reached },
                       (struct slice){ 0 });
    uint64_t first = coord->cluster.generation << DEFINITION_GENERATION_BITS;
    uint64_t mask = (UINT64_C(1) << DEFINITION_GENERATION_BITS) - 1;
    uint64_t number = first | (hash_u64((struct slice){ asked.bytes, sizeof asked.bytes }) & mask);

    while (number == 0 || definition_find(coord, number) != NULL)
        number = first | ((number + 1) & mask);
    return number;
}

/* ---- what is to be written ---- */
/* The body of Put is the request's own, and stays it: see record_free. */
static bool fill_put(struct change *change, definition_record *record)
{
    change_request *request = change->request;
    struct definition_fault fault = { 0 };

    if (!definition_body_check(request->body, request->name, &fault))
        return refuse(change,
                      &(struct objection){ CODE(INVALID_ARGUMENT), fault.field, fault.limit,
                                           fault.value, "the definition is out of bounds" });
    record->body = request->body;
    if (change->stands == NULL)
        return true;
    definition_record *before = definition_unpack(definition_newest(change->stands));
    const char *frozen = definition_frozen(before->body, request->body);

    holdfast__internal__v1__definition_version__free_unpacked(before, NULL);
    if (frozen == NULL)
        return true;
    return refuse(change,
                  &(struct objection){ CODE(INVALID_ARGUMENT), frozen, "what it was made with", "",
                                       "this never changes once a definition is made" });
}

static bool fill_roll_back(struct change *change, definition_record *record)
{
    const struct definition_version *target;
    char value[24];

    if (change->stands == NULL)
        return refuse_unknown(change);
    target = definition_get(change->stands, change->request->version);
    if (target == NULL) {
        snprintf(value, sizeof value, "%" PRIu64, change->request->version);
        return refuse(change,
                      &(struct objection){ CODE(NOT_FOUND), "version", "one of the last 100", value,
                                           "that version is not kept" });
    }
    definition_record *earlier = definition_unpack(target);

    record->body = earlier->body;
    record->rolled_back_to = target->version;
    earlier->body = NULL;
    holdfast__internal__v1__definition_version__free_unpacked(earlier, NULL);
    return true;
}

static bool fill_delete(struct change *change, definition_record *record)
{
    if (change->stands == NULL)
        return refuse_unknown(change);
    if (change->kind == HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY)
        return refuse(
            change, &(struct objection){ CODE(INVALID_ARGUMENT), "kind", "not currency", "currency",
                                         "a currency cannot be deleted: players may hold it" });
    definition_record *newest = definition_unpack(definition_newest(change->stands));

    record->body = newest->body;
    record->deleted = true;
    newest->body = NULL;
    holdfast__internal__v1__definition_version__free_unpacked(newest, NULL);
    return true;
}

/* False: refused. The body is to be freed unless it is the request's. */
static bool record_fill(struct change *change, definition_record *record)
{
    struct coord *coord = change->coord;
    change_request *request = change->request;

    record->number = change->stands != NULL ? change->stands->number : number_new(coord, change);
    record->version = change->stands != NULL ? definition_newest(change->stands)->version + 1 : 1;
    record->name = request->name;
    record->author = request->author;
    record->reason = request->reason;
    record->op_id = request->op_id;
    if (!request->dry_run)
        record->at_ms = (int64_t)(coord->now_ms + coord->wall_ahead_ms);
    switch (request->deed) {
    case HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_PUT:
        return fill_put(change, record);
    case HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_ROLL_BACK:
        return fill_roll_back(change, record);
    case HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_DELETE:
        return fill_delete(change, record);
    default:
        return refuse(change, &(struct objection){ CODE(INVALID_ARGUMENT), "deed",
                                                   "put, roll back or delete", "",
                                                   "there is no such deed" });
    }
}

/* ---- waiting ---- */
static struct definition_wait *wait_new(struct coord *coord)
{
    for (uint32_t i = 0; i < DEFINITION_WAITS_MAX; i++) {
        if (coord->definitions.waits[i].state == WAIT_FREE)
            return &coord->definitions.waits[i];
    }
    return NULL;
}

/* Its caller may have been told long ago that the outcome is unknown: a name that is on its way
 * belongs to what may yet be made. */
static bool is_writing(const struct coord *coord)
{
    if (flights_define(coord) || coord->definitions.unseen.revision != 0)
        return true;
    for (uint32_t i = 0; i < DEFINITION_WAITS_MAX; i++) {
        enum definition_wait_state state = coord->definitions.waits[i].state;
        if (state == WAIT_WRITTEN || state == WAIT_UNSURE)
            return true;
    }
    return false;
}

bool definition_waits_open(const struct coord *coord)
{
    for (uint32_t i = 0; i < DEFINITION_WAITS_MAX; i++) {
        enum definition_wait_state state = coord->definitions.waits[i].state;
        if (state != WAIT_FREE && state != WAIT_LOST)
            return true;
    }
    return false;
}

/* Nothing is made before every shard has said how far it is: one that is ahead of this etcd says
 * that it was restored from a backup, and numbers and versions would be given twice. */
static bool check_shards(struct change *change)
{
    const struct coord *coord = change->coord;
    uint64_t revision = definitions_revision(coord);
    char why[TEXT_SIZE];

    for (uint32_t i = 0; i < coord->shard_count; i++) {
        const struct defined_shard *stands = &coord->shards[i].defined;
        if (stands->known &&
            (stands->generation < coord->cluster.generation ||
             (stands->generation == coord->cluster.generation && stands->revision <= revision)))
            continue;
        snprintf(why, sizeof why,
                 stands->known ? "shard %u knows of more definitions than etcd: was that restored "
                                 "from a backup?"
                               : "shard %u has not said yet how far it has followed",
                 i);
        return refuse_later(change, why);
    }
    return true;
}

static void write(struct change *change, definition_record *record)
{
    struct coord *coord = change->coord;
    struct definition_wait *wait = wait_new(coord);
    const struct definition *definition = definition_find(coord, record->number);
    const struct definition_version *before =
        definition != NULL ? definition_get(definition, record->version - 1) : NULL;
    size_t size = holdfast__internal__v1__definition_version__get_packed_size(record);
    uint8_t *data = arena_alloc(&change->out->arena, size + 1);

    holdfast__internal__v1__definition_version__pack(record, data);
    if (wait == NULL || is_writing(coord) ||
        !flight_put_definition(coord, record->number, record->version,
                               before != NULL ? before->revision : 0,
                               (struct slice){ data, size })) {
        (void)refuse_later(change, "another change of a definition is on its way");
        return;
    }
    *wait = (struct definition_wait){
        .state = WAIT_WRITTEN,
        .call = change->call,
        .number = record->number,
        .version = record->version,
        .until_ms = coord->now_ms + coord->limits.define_write_ms,
        .wait_ms = change->request->wait_ms,
    };
}

static bool same_body(const Holdfast__V1__DefinitionBody *a, const Holdfast__V1__DefinitionBody *b)
{
    size_t size = holdfast__v1__definition_body__get_packed_size(a);

    if (size != holdfast__v1__definition_body__get_packed_size(b))
        return false;
    uint8_t *bytes = mem_alloc(2 * size + 1);

    holdfast__v1__definition_body__pack(a, bytes);
    holdfast__v1__definition_body__pack(b, bytes + size);
    bool same = memcmp(bytes, bytes + size, size) == 0;
    free(bytes);
    return same;
}

/* Where the version is in etcd: answers, or waits for the shards. */
static void wait_for_shards(struct coord *coord, struct definition_wait *wait,
                            const struct definition_version *made, struct coord_out *out)
{
    wait->state = WAIT_SHARDS;
    if (wait->wait_ms > 0 && definition_left(coord, made->revision) > 0 &&
        coord->now_ms < wait->until_ms)
        return;
    answer_made(coord, out, wait, made, NULL);
    wait->state = WAIT_FREE;
}

/* What the op_id made of the definition; NULL: nothing that is kept. */
static const struct definition_version *made_by(const struct definition *definition,
                                                const char *op_id)
{
    for (uint32_t i = 0; i < definition->count; i++) {
        definition_record *record = definition_unpack(&definition->versions[i]);
        bool own = strcmp(record->op_id, op_id) == 0;

        holdfast__internal__v1__definition_version__free_unpacked(record, NULL);
        if (own)
            return &definition->versions[i];
    }
    return NULL;
}

static bool asks_for(const change_request *request, const struct definition_version *version)
{
    definition_record *record = definition_unpack(version);
    bool deletes = request->deed == HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_DELETE;
    bool same = record->deleted == deletes &&
                (request->body == NULL || same_body(record->body, request->body)) &&
                record->rolled_back_to == request->version;

    holdfast__internal__v1__definition_version__free_unpacked(record, NULL);
    return same;
}

static void answer_duplicate(struct change *change, const struct definition *definition,
                             const struct definition_version *version)
{
    struct coord *coord = change->coord;
    struct definition_wait now = { .call = change->call, .duplicate = true };
    struct definition_wait *wait = change->request->wait_ms > 0 ? wait_new(coord) : NULL;

    if (wait == NULL) {
        answer_made(coord, change->out, &now, version, NULL);
        return;
    }
    now.number = definition->number;
    now.version = version->version;
    now.wait_ms = change->request->wait_ms;
    now.until_ms = coord->now_ms + change->request->wait_ms;
    *wait = now;
    wait_for_shards(coord, wait, version, change->out);
}

/* True: the op_id made something before, be it of a definition of that name that was deleted since,
 * and the name made again. */
static bool find_duplicate(struct change *change)
{
    const struct definitions *all = &change->coord->definitions;
    const change_request *request = change->request;

    for (uint32_t i = 0; i < all->count; i++) {
        const struct definition *definition = all->list[i];

        if (definition->kind != change->kind || strcmp(definition->name, request->name) != 0)
            continue;
        const struct definition_version *version = made_by(definition, request->op_id);
        if (version == NULL)
            continue;
        if (!asks_for(request, version))
            return !refuse(change, &(struct objection){
                                       CODE(OPERATION_ID_MISMATCH), "op_id", "", request->op_id,
                                       "the op_id was used before for another change" });
        answer_duplicate(change, definition, version);
        return true;
    }
    return false;
}

/* A Put of what stands already makes no version. */
static bool is_unchanged(struct change *change, const definition_record *record)
{
    if (change->stands == NULL || record->deleted ||
        change->request->deed != HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_PUT)
        return false;
    definition_record *newest = definition_unpack(definition_newest(change->stands));
    bool same = same_body(newest->body, record->body);

    holdfast__internal__v1__definition_version__free_unpacked(newest, NULL);
    return same;
}

static void carry_out(struct change *change, definition_record *record)
{
    struct definition_wait now = { .call = change->call };

    if (!record->deleted && !check_room(change, record))
        return; /* What is deleted makes room. */
    now.unchanged = is_unchanged(change, record);
    if (now.unchanged)
        answer_made(change->coord, change->out, &now, definition_newest(change->stands), NULL);
    else if (change->request->dry_run)
        answer_made(change->coord, change->out, &now, NULL, record);
    else
        write(change, record);
}

static void judge(struct change *change)
{
    definition_record record = HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;

    if (!check_texts(change) || !find_kind(change))
        return;
    if (change->request->body != NULL) { /* Defaults are filled in before it is compared. */
        struct definition_fault ignored;
        (void)definition_body_check(change->request->body, change->request->name, &ignored);
    }
    find_stand(change);
    if (find_duplicate(change) || !check_version(change) || !check_shards(change))
        return;
    if (record_fill(change, &record))
        carry_out(change, &record);
    if (record.body != change->request->body)
        holdfast__v1__definition_body__free_unpacked(record.body, NULL);
}

/* ---- out of a backup ---- */
static bool check_restored(struct change *change)
{
    const definition_record *given = change->request->restored;
    struct definition_fault fault = { 0 };

    if (given == NULL || given->body == NULL)
        return refuse(change, &(struct objection){ CODE(INVALID_ARGUMENT), "definition.body",
                                                   "the body of the backup", "",
                                                   "the definition has no body" });
    if (given->number == 0 || given->version == 0 || given->version > VERSION_MAX || given->deleted)
        return refuse(change, &(struct objection){
                                  CODE(INVALID_ARGUMENT), "definition",
                                  "a number above 0, a version of 1 to 2^63 - 1, and not "
                                  "deleted",
                                  given->name, "that is no definition that stands in a backup" });
    if (given->at_ms < 0 || given->at_ms > AT_MS_MAX)
        return refuse(change,
                      &(struct objection){ CODE(INVALID_ARGUMENT), "definition.made_at_ms",
                                           "milliseconds since 1970, up to the year 9999",
                                           given->name, "the definition was made at no time" });
    if (strlen(given->op_id) > OP_ID_BYTES_MAX || strlen(given->reason) > REASON_BYTES_MAX ||
        strlen(given->author) > AUTHOR_BYTES_MAX)
        return refuse(change, &(struct objection){
                                  CODE(INVALID_ARGUMENT), "definition",
                                  "an op_id of at most 160 bytes; a reason and an author of 64",
                                  given->name, "a text of the definition is too long" });
    if (!definition_body_check(given->body, given->name, &fault))
        return refuse(change,
                      &(struct objection){ CODE(INVALID_ARGUMENT), fault.field, fault.limit,
                                           fault.value, "the definition is out of bounds" });
    return check_wait(change);
}

static bool same_record(const struct definition_version *version, const definition_record *given)
{
    size_t size = holdfast__internal__v1__definition_version__get_packed_size(given);

    if (size != version->packed.size)
        return false;
    uint8_t *bytes = mem_alloc(size + 1);

    holdfast__internal__v1__definition_version__pack(given, bytes);
    bool same = memcmp(bytes, version->packed.data, size) == 0;
    free(bytes);
    return same;
}

/* Data of the backup stands under the number: another definition of that name would not find it,
 * and another one of that number would take it for its own. */
static bool refuse_other(struct change *change, const char *field)
{
    return refuse(change, &(struct objection){
                              CODE(VERSION_CONFLICT), field, "as in the backup",
                              change->request->restored->name,
                              "the cluster has another definition under that name or number: "
                              "begin with a new cluster" });
}

static void judge_restored(struct change *change)
{
    definition_record *given = change->request->restored;
    struct definition_wait now = { .call = change->call };

    if (!check_restored(change))
        return;
    change->kind = (uint32_t)given->body->kind_case;
    change->stands = definition_named(change->coord, change->kind, given->name);
    const struct definition *holder = definition_find(change->coord, given->number);

    if (holder != NULL && same_record(definition_newest(holder), given))
        answer_duplicate(change, holder, definition_newest(holder));
    else if (holder != NULL)
        (void)refuse_other(change, "definition.number");
    else if (change->stands != NULL)
        (void)refuse_other(change, "definition.name");
    else if (!check_shards(change) || !check_room(change, given))
        return;
    else if (change->request->dry_run)
        answer_made(change->coord, change->out, &now, NULL, given);
    else
        write(change, given);
}

void definition_change(struct coord *coord, const struct coord_event *event, struct coord_out *out)
{
    struct change change = { .coord = coord, .out = out, .call = event->call };

    change.request = holdfast__internal__v1__change_definition_request__unpack(
        NULL, event->body.size, event->body.data);
    if (change.request == NULL) {
        (void)refuse(&change, &(struct objection){ CODE(INVALID_ARGUMENT), "", "", "",
                                                   "the message is malformed" });
        return;
    }
    if (!coord_decides(coord))
        (void)refuse_later(&change, "this coordinator does not decide");
    else if (!coord_has_heard_all(coord)) /* The name may have been given. */
        (void)refuse_later(&change, "the coordinator has not read yet what was written before it");
    else if (change.request->deed ==
             HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_RESTORE)
        judge_restored(&change);
    else
        judge(&change);
    holdfast__internal__v1__change_definition_request__free_unpacked(change.request, NULL);
}

/* ---- what came of it ---- */
/* The compare failed: an earlier attempt of this very write was carried out, or another
 * coordinator's; the record tells by its revision alone, since only one of them can be there. */
static void wait_unsure(struct coord *coord, struct definition_wait *wait)
{
    const struct definition *definition = definition_find(coord, wait->number);
    const struct definition_version *made =
        definition != NULL ? definition_get(definition, wait->version) : NULL;

    if (made == NULL)
        return;
    wait->state =
        WAIT_LOST; /* The caller sends the same again, and its op_id finds what it made. */
}

static void wait_look(struct coord *coord, struct definition_wait *wait, struct coord_out *out)
{
    const struct definition *definition = definition_find(coord, wait->number);
    const struct definition_version *made =
        definition != NULL ? definition_get(definition, wait->version) : NULL;

    if (wait->state == WAIT_UNSURE)
        wait_unsure(coord, wait);
    if (wait->state == WAIT_SHARDS && made != NULL) {
        wait_for_shards(coord, wait, made, out);
        return;
    }
    if (wait->state == WAIT_LOST || coord->now_ms >= wait->until_ms) {
        coord_answer_put(out, wait->call, WIRE_UNKNOWN, NULL);
        wait->state = WAIT_FREE;
    }
}

void definition_waits_run(struct coord *coord, struct coord_out *out)
{
    for (uint32_t i = 0; i < DEFINITION_WAITS_MAX; i++) {
        struct definition_wait *wait = &coord->definitions.waits[i];
        if (wait->state != WAIT_FREE)
            wait_look(coord, wait, out);
    }
}
