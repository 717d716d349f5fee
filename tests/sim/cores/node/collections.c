/*
 * Documents of one shard at two members (node/core/document): collections of every policy are
 * defined, changed, deleted and made again; callers write whole documents and parts of them, with
 * and without contexts, again under the same op_id, at members that know of each other's writes and
 * that do not; each answer is what papers.h makes of it.
 */
#include "tests/sim/cores/node/collections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"

#define TURNS 150u

#define POLICY(name)     HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_##name
#define DURABILITY(name) HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_##name
#define KIND(name)       HOLDFAST__V1__PATCH_KIND__PATCH_KIND_##name

static const struct {
    const char *name;
    enum merge_policy policy;
    Holdfast__V1__DocumentPolicy told;
} kinds[SHELVES] = { { "whole", MERGE_POLICY_LWW, POLICY(LAST_WRITE) },
                     { "leaves", MERGE_POLICY_MERGE, POLICY(MERGE) },
                     { "tags", MERGE_POLICY_SET, POLICY(SET) },
                     { "rooms", MERGE_POLICY_VECTOR, POLICY(VECTOR) },
                     { "stats", MERGE_POLICY_COUNTER, POLICY(COUNTER) } };

/* ---- definitions ---- */

void shelf_define(struct hall *h, struct shelf *shelf)
{
    Holdfast__Internal__V1__DefinitionVersion version =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__DocumentsBody documents = HOLDFAST__V1__DOCUMENTS_BODY__INIT;

    for (uint32_t i = 0; i < SHELVES; i++) {
        if (kinds[i].policy == shelf->policy)
            documents.policy = kinds[i].told;
    }
    documents.ttl_ms = (int64_t)shelf->ttl_ms;
    documents.bytes_max = shelf->bytes_max;
    documents.durability = shelf->durability;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS;
    body.documents = &documents;
    version.number = shelf->number;
    version.version = ++shelf->version;
    version.deleted = shelf->deleted;
    version.name = shelf->name;
    version.body = &body;
    struct slice bytes = arena_pack(&h->sim->arena, &version.base);

    PROMISE(h->sim, document_rules_take(&h->pair.rules, bytes) == ERR_OK,
            "a definition is refused");
    /* What is no news changes nothing. */
    documents.bytes_max = 1;
    documents.durability = DURABILITY(MAJORITY);
    version.deleted = !shelf->deleted;
    version.version -= rsim_between(h->sim, 0, version.version > 1);
    bytes = arena_pack(&h->sim->arena, &version.base);
    PROMISE(h->sim, document_rules_take(&h->pair.rules, bytes) == ERR_OK,
            "an old definition is refused");
}

/* Definitions that this program cannot follow, and of other kinds, are left alone. */
static void define_others(struct hall *h)
{
    Holdfast__Internal__V1__DefinitionVersion version =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__DocumentsBody documents = HOLDFAST__V1__DOCUMENTS_BODY__INIT;
    Holdfast__V1__CurrencyBody currency = HOLDFAST__V1__CURRENCY_BODY__INIT;
    uint32_t count = h->pair.rules.count;

    version.version = 1;
    version.number = ++h->numbers * 3;
    version.name = text_lend("other");
    version.body = &body;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS;
    body.documents = &documents;
    documents.policy = POLICY(MERGE);
    switch (rsim_between(h->sim, 0, 6)) {
    case 0:
        body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY;
        body.currency = &currency;
        break;
    case 1:
        version.body = NULL;
        break;
    case 2:
        version.number = 0;
        break;
    case 3:
        documents.policy =
            rsim_chance(h->sim, 50) ? POLICY(UNSPECIFIED) : (Holdfast__V1__DocumentPolicy)77;
        break;
    case 4:
        documents.ttl_ms = rsim_chance(h->sim, 50) ? -1 : 31536000001;
        break;
    case 5:
        version.name = text_lend("Other");
        break;
    default:
        PROMISE(h->sim,
                document_rules_take(&h->pair.rules, SLICE_LITERAL("\x0a\xff")) == ERR_CORRUPT,
                "what is no definition is taken");
        return;
    }
    PROMISE(h->sim,
            document_rules_take(&h->pair.rules, arena_pack(&h->sim->arena, &version.base)) ==
                    ERR_OK &&
                h->pair.rules.count == count,
            "a definition that cannot be followed is taken");
}

static void shelf_vary(struct hall *h, struct shelf *shelf)
{
    static const Holdfast__V1__DocumentDurability durabilities[] = {
        DURABILITY(UNSPECIFIED), DURABILITY(MEMORY), DURABILITY(ONE), DURABILITY(MAJORITY)
    };
    static const uint64_t ends_ms[] = { 0, 0, 0, 1000, 2500 };
    static const uint32_t sizes[] = { 0, 0, 65536, 65537, 20, 30, 45 };

    shelf->durability = durabilities[rsim_between(h->sim, 0, rsim_chance(h->sim, 15) ? 3 : 2)];
    shelf->ttl_ms = shelf->policy == MERGE_POLICY_COUNTER ? 0 : RSIM_PICK(h->sim, ends_ms);
    shelf->bytes_max = shelf->policy == MERGE_POLICY_COUNTER ? 0 : RSIM_PICK(h->sim, sizes);
    shelf_define(h, shelf);
}

static void shelf_make(struct hall *h, struct shelf *shelf)
{
    static const char *const entities[] = { "guild:7", "player:42", "g:\xc3\xa9" };

    shelf->number = ++h->numbers * 3;
    shelf->version = 0;
    shelf->deleted = false;
    for (uint32_t i = 0; i < SHELF_PAPERS; i++) {
        shelf->papers[i] = (struct paper){ .policy = shelf->policy,
                                           .entity = entities[i == 2 ? 1 : 0],
                                           .key = i == 1 ? "hall" : "hall-2" };
    }
    shelf_vary(h, shelf);
}

/* ---- members ---- */

static void gather(struct hall *h, uint32_t member)
{
    struct merge_out *out = &h->pair.replicas[member]->out;

    for (uint32_t i = 0; i < out->done_count; i++) {
        uint32_t at = h->done_count++ % TICKETS_MAX;

        if (h->done[at].told.record != NULL)
            merge_record_deinit(h->done[at].told.record);
        free(h->done[at].told.record);
        h->done[at].member = member;
        h->done[at].told = out->done[i];
    }
    out->done_count = 0;
}

const struct merge_done *hall_done(struct hall *h, uint32_t member, uint64_t ticket)
{
    for (uint32_t i = 0; i < TICKETS_MAX; i++) {
        if (h->done[i].member == member && h->done[i].told.ticket == ticket)
            return &h->done[i].told;
    }
    return NULL;
}

void hall_deliver(struct hall *h, uint32_t from)
{
    struct merge_replica *replica = h->pair.replicas[from];
    struct merge_replica *to = h->pair.replicas[1 - from];

    merge_durable(replica, replica->log_end);
    gather(h, from);
    struct merge_out out = replica->out;

    replica->out = (struct merge_out){ 0 };
    for (uint32_t i = 0; i < out.message_count; i++) {
        err e = merge_receive(to, h->pair.now_ms, buf_slice(&out.messages[i].bytes));

        PROMISE(h->sim, e == ERR_OK, "a message is not taken: %d", (int)e);
        h->heard_ms[1 - from] = h->pair.now_ms;
    }
    merge_out_clear(&out);
    free(out.messages);
    free(out.done);
    buf_deinit(&out.log);
    gather(h, 1 - from);
    for (uint32_t i = 0; i < SHELVES; i++) {
        for (uint32_t k = 0; k < SHELF_PAPERS; k++) {
            struct paper *paper = &h->shelves[i].papers[k];

            paper->known[1 - from] |= paper->known[from];
        }
    }
}

void hall_exchange(struct hall *h)
{
    for (uint32_t round = 0; round < 12; round++)
        hall_deliver(h, round % 2);
}

bool hall_is_near(const struct hall *h, uint32_t member)
{
    return h->heard_ms[member] != 0 && h->pair.now_ms - h->heard_ms[member] <= WAITS_UNHEARD_MS;
}

/* ---- calls ---- */

char *hall_op_id(struct hall *h, uint64_t at_ms)
{
    return arena_printf(&h->sim->arena, "%08" PRIx64 "-%04" PRIx64 "-7000-8000-%012" PRIx64,
                        at_ms >> 16, at_ms & 0xffff, ++h->ops);
}

static void refusal_tell(struct hall *h)
{
    const struct refusal *refusal = &h->pair.refusal;
    Holdfast__V1__ErrorDetail *detail = &h->sim->detail;

    holdfast__v1__error_detail__init(detail);
    detail->code = refusal->code;
    detail->message = text_lend(refusal->message != NULL ? refusal->message : "");
    detail->field = text_lend(refusal->field != NULL ? refusal->field : "");
    detail->limit = text_lend(refusal->limit != NULL ? refusal->limit : "");
    detail->value = text_lend(refusal->value != NULL ? refusal->value : "");
}

err hall_call(struct hall *h, uint32_t member, uint32_t method, const ProtobufCMessage *request)
{
    struct document_context context = pair_context(&h->pair, (int)member);

    context.no_disk = h->no_disk;
    h->pair.begun = (struct document_begun){ 0 };
    h->pair.refusal = (struct refusal){ 0 };
    err e = document_method_find(method)->begin(&context, arena_pack(&h->pair.arena, request),
                                                &h->pair.begun);
    refusal_tell(h);
    PROMISE(h->sim, (e == ERR_OK) == (h->pair.refusal.code == 0), "%d with the code %d", (int)e,
            (int)h->pair.refusal.code);
    PROMISE(h->sim, e == ERR_OK || e == ERR_INVALID || e == ERR_CONFLICT, "refused by %d", (int)e);
    merge_durable(h->pair.replicas[member], h->pair.replicas[member]->log_end);
    gather(h, member);
    return e;
}

/* What was expected of a field is said of it, and not of what was given. */
static void check_limit(struct hall *h)
{
    static const struct {
        const char *field, *limit;
    } told[] = {
        { "entity", "kind:id, 3 to 128 bytes" },
        { "collection", "1 to 64 of [a-z0-9_]" },
        { "key", "1 to 200 bytes" },
        { "prefix", "at most 200 bytes" },
        { "ttl_ms", "1000 to 31536000000" },
        { "page_size", "1 to 100" },
        { "durability", "at least the collection's durability" },
        { "cursor", "next_cursor" },
        { "context", "context" },
    };
    const Holdfast__V1__ErrorDetail *detail = &h->sim->detail;

    PROMISE(h->sim, detail->limit[0] != 0, "nothing is said of what was expected of \"%s\"",
            detail->field);
    for (size_t i = 0; i < ARRAY_SIZE(told); i++)
        PROMISE(h->sim,
                strcmp(detail->field, told[i].field) != 0 ||
                    strstr(detail->limit, told[i].limit) != NULL,
                "of \"%s\" it is said: %s", detail->field, detail->limit);
}

void hall_refused(struct hall *h, err e, Holdfast__V1__ErrorCode code, const char *field)
{
    PROMISE(h->sim, e != ERR_OK, "what is to be refused with the code %d (%s) is carried out",
            (int)code, field != NULL ? field : "");
    rsim_refused(h->sim, code, field);
    if (code == CODE(INVALID_ARGUMENT))
        check_limit(h);
    h->sim->counts.collections_refused++;
}

static err send_update(struct hall *h, uint32_t member, const struct ask *ask)
{
    Holdfast__V1__UpdateDocumentRequest request = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__INIT;
    Holdfast__V1__PatchList list = HOLDFAST__V1__PATCH_LIST__INIT;
    Holdfast__V1__PatchStep steps[STEPS_MAX], *at[STEPS_MAX];

    for (uint32_t i = 0; i < ask->step_count; i++) {
        holdfast__v1__patch_step__init(&steps[i]);
        steps[i].kind = ask->steps[i].kind;
        steps[i].path = text_lend(ask->steps[i].path);
        steps[i].json = text_lend(ask->steps[i].json);
        at[i] = &steps[i];
    }
    list.n_steps = ask->step_count;
    list.steps = at;
    request.entity = text_lend(ask->paper->entity);
    request.op_id = text_lend(ask->op_id);
    request.collection = ask->shelf->name;
    request.key = text_lend(ask->paper->key);
    request.context = text_lend(ask->context.text != NULL ? ask->context.text : "");
    request.durability = ask->durability;
    request.ttl_ms = ask->ttl_ms;
    if (ask->ttl_ms != 0)
        request._ttl_ms_case = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST___TTL_MS_TTL_MS;
    if (ask->json != NULL) {
        request.edit_case = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__EDIT_MERGE;
        request.merge = text_lend(ask->json);
    } else {
        request.edit_case = HOLDFAST__V1__UPDATE_DOCUMENT_REQUEST__EDIT_PATCH;
        request.patch = &list;
    }
    return hall_call(h, member, ask->method, &request.base);
}

err hall_send(struct hall *h, uint32_t member, const struct ask *ask)
{
    Holdfast__V1__PutDocumentRequest put = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;
    Holdfast__V1__DeleteDocumentRequest gone = HOLDFAST__V1__DELETE_DOCUMENT_REQUEST__INIT;
    const char *context = ask->context.text != NULL ? ask->context.text : "";

    if (ask->method == METHOD_UPDATE_DOCUMENT)
        return send_update(h, member, ask);
    if (ask->method == METHOD_DELETE_DOCUMENT) {
        gone.entity = text_lend(ask->paper->entity);
        gone.op_id = text_lend(ask->op_id);
        gone.collection = ask->shelf->name;
        gone.key = text_lend(ask->paper->key);
        gone.context = text_lend(context);
        gone.durability = ask->durability;
        return hall_call(h, member, ask->method, &gone.base);
    }
    put.entity = text_lend(ask->paper->entity);
    put.op_id = text_lend(ask->op_id);
    put.collection = ask->shelf->name;
    put.key = text_lend(ask->paper->key);
    put.json = text_lend(ask->json);
    put.context = text_lend(context);
    put.durability = ask->durability;
    put.ttl_ms = ask->ttl_ms;
    if (ask->ttl_ms != 0)
        put._ttl_ms_case = HOLDFAST__V1__PUT_DOCUMENT_REQUEST___TTL_MS_TTL_MS;
    return hall_call(h, member, ask->method, &put.base);
}

void hall_keep_context(struct hall *h, const struct context *context)
{
    const char *text = context->text;
    uint32_t at = h->context_count < CONTEXTS_MAX
                      ? h->context_count++
                      : (uint32_t)rsim_between(h->sim, 0, CONTEXTS_MAX - 1);

    PROMISE(h->sim, strncmp(text, "d1.", 3) == 0 && strlen(text) <= 700, "a context is \"%s\"",
            text);
    h->contexts[at] = *context;
    h->contexts[at].text = arena_copy_text(&h->sim->arena, text);
}

bool context_holds(const struct context *context, const struct shelf *shelf,
                   const struct paper *paper)
{
    return context->text == NULL || (context->paper == paper && context->number == shelf->number);
}

void hall_draw_context(struct hall *h, const struct shelf *shelf, const struct paper *paper,
                       struct context *ret_context)
{
    bool any = rsim_chance(h->sim, 4);

    *ret_context = (struct context){ 0 };
    if (rsim_chance(h->sim, 50))
        return;
    for (uint32_t i = 0; i < 2 * CONTEXTS_MAX && h->context_count > 0; i++) {
        const struct context *context = &h->contexts[rsim_between(h->sim, 0, h->context_count - 1)];

        if (!any && !context_holds(context, shelf, paper))
            continue;
        *ret_context = *context;
        return;
    }
}

/* ---- a turn ---- */

static void shelf_turn(struct hall *h, struct shelf *shelf)
{
    define_others(h);
    if (!shelf->deleted && rsim_chance(h->sim, 60)) {
        shelf_vary(h, shelf);
        return;
    }
    shelf->deleted = !shelf->deleted;
    if (!shelf->deleted)
        shelf_make(h, shelf);
    else
        shelf_define(h, shelf);
}

/* The owner takes away what deleted collections have; others stay as they are. */
static void sweep_turn(struct hall *h)
{
    uint32_t member = (uint32_t)rsim_between(h->sim, 0, 1);
    struct document_context context = pair_context(&h->pair, (int)member);
    struct merge_replica *replica = h->pair.replicas[member];
    struct merge_key *key = NULL, *after = NULL;

    hall_exchange(h);
    h->pair.now_ms += 5;
    while (document_sweep_deleted(&context, after, &key) == ERR_OK) {
        if (after != NULL)
            merge_key_unref(after);
        after = key;
        h->sim->counts.collections_swept++;
    }
    if (after != NULL)
        merge_key_unref(after);
    for (uint32_t i = 0; i < replica->store.count; i++) {
        const struct merge_row *row = &replica->store.rows[i];
        struct reader name = reader_from(merge_key_name(row->key));
        bool live = false;
        uint64_t number = read_u64_be(&name);

        for (uint32_t k = 0; k < SHELVES; k++)
            live |= h->shelves[k].number == number && !h->shelves[k].deleted;
        PROMISE(h->sim, live || row->record.count == 0, "a deleted collection keeps a document");
    }
    hall_exchange(h);
}

static void time_turn(struct hall *h)
{
    struct shelf *shelf = &RSIM_PICK(h->sim, h->shelves);
    struct paper *paper = &RSIM_PICK(h->sim, shelf->papers);

    h->pair.now_ms += rsim_between(h->sim, 1, rsim_chance(h->sim, 20) ? 7000 : 900);
    for (uint32_t i = 0; i < paper->part_count; i++) {
        uint64_t at_ms = rsim_about(h->sim, paper->parts[i].ends_ms + 1);

        if (at_ms > h->pair.now_ms && rsim_chance(h->sim, 50)) {
            h->pair.now_ms = at_ms;
            hall_get(h, (uint32_t)rsim_between(h->sim, 0, 1), shelf, paper);
            return;
        }
    }
}

static void tick_turn(struct hall *h)
{
    h->pair.now_ms += rsim_chance(h->sim, 50) ? WAITS_REPORT_MS : 50;
    for (uint32_t i = 0; i < PAPER_MEMBERS; i++)
        merge_tick(h->pair.replicas[i], h->pair.now_ms);
    hall_exchange(h);
}

static void turn(struct hall *h)
{
    uint32_t member = (uint32_t)rsim_between(h->sim, 0, 1);
    uint64_t dice = rsim_between(h->sim, 0, 99);
    struct shelf *shelf = &RSIM_PICK(h->sim, h->shelves);

    h->pair.erased = rsim_chance(h->sim, 3);
    h->no_disk = rsim_chance(h->sim, 5);
    if (dice < 55)
        hall_write(h, member, shelf);
    else if (dice < 60)
        hall_list(h, member, shelf);
    else if (dice < 72)
        hall_get(h, member, shelf, &RSIM_PICK(h->sim, shelf->papers));
    else if (dice < 80)
        hall_deliver(h, member);
    else if (dice < 88)
        tick_turn(h);
    else if (dice < 95)
        time_turn(h);
    else if (dice < 98)
        shelf_turn(h, shelf);
    else
        sweep_turn(h);
}

static void settle(struct hall *h)
{
    h->pair.erased = h->no_disk = false;
    hall_exchange(h);
    for (uint32_t i = 0; i < SHELVES; i++) {
        for (uint32_t k = 0; k < SHELF_PAPERS; k++) {
            hall_get(h, 0, &h->shelves[i], &h->shelves[i].papers[k]);
            hall_get(h, 1, &h->shelves[i], &h->shelves[i].papers[k]);
        }
        hall_list(h, (uint32_t)rsim_between(h->sim, 0, 1), &h->shelves[i]);
    }
}

void room_collections(struct rsim *sim)
{
    struct hall *h = arena_zalloc(&sim->arena, sizeof *h);

    h->sim = sim;
    pair_init(&h->pair);
    for (uint32_t i = 0; i < SHELVES; i++) {
        h->shelves[i].policy = kinds[i].policy;
        memcpy(h->shelves[i].name, kinds[i].name, strlen(kinds[i].name) + 1);
        shelf_make(h, &h->shelves[i]);
    }
    h->pair.rules.complete = true;
    for (uint32_t i = 0; i < TURNS; i++)
        turn(h);
    settle(h);
    hall_restore(h);
    settle(h);
    for (uint32_t i = 0; i < TURNS / 4; i++)
        turn(h);
    settle(h);
    hall_limits(h);
    for (uint32_t i = 0; i < TICKETS_MAX; i++) {
        if (h->done[i].told.record != NULL)
            merge_record_deinit(h->done[i].told.record);
        free(h->done[i].told.record);
    }
    pair_deinit(&h->pair);
}
