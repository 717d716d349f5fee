/*
 * request_fuzz: every method's request on its whole way: read from either JSON or protobuf, checked
 * and routed as a router does, prepared as the shard's owner does, applied, asked again. The input
 * is a series of [method][form][u16 size][bytes]; they act on one shard, one after the other.
 */
#include <string.h>

#include "node/core/codec/json_canon.h"
#include "node/rpc/fixture.h"
#include "router/core/node_form.h"
#include "router/core/admission.h"
#include "router/core/route.h"
#include "router/core/scatter.h"
#include "runtime/base/check.h"
#include "runtime/codec/json_codec.h"
#include "runtime/codec/proto_codec.h"
#include "tests/fuzz/fuzz.h"

#define REQUESTS_MAX 8u
/* The mailbox of player 43 is on this shard, that of 44 is not. */
#define SHARD  7u
#define SHARDS 8u

enum { FORM_JSON, FORM_PROTO, FORM_PLAIN_JSON, FORMS };

/* The node says of every form alike how deep a document may nest. */
_Static_assert(CODEC_DOCUMENT_DEPTH_MAX > JSON_DEPTH_MAX, "the depth of a document");

struct target {
    struct fixture fixture;
    struct json_codec codec;
    struct arena arena;
};

/* ---- the router's part ---- */

static bool route(struct target *t, const struct method_info *method,
                  const ProtobufCMessage *message)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    struct route_entity entity;
    struct scatter_elements elements = { 0 };

    CHECK(admission_priority_of(method, message) < ADMISSION_PRIORITY_COUNT);
    if (scatter_limit(method) > 0) {
        if (scatter_split(method, message, &t->arena, &elements, &detail) != ERR_OK)
            CHECK(detail.message != NULL && detail.message[0] != 0);
        else
            CHECK(elements.count <= scatter_limit(method));
        return false;
    }
    if (method->route != METHOD_MUTATION && method->route != METHOD_READ)
        return method->route == METHOD_SHARD || method->route == METHOD_SHARD_WRITE ||
               method->route == METHOD_GATHER;
    if (route_find_entity(method, message, &t->arena, &entity, &detail) == ERR_OK)
        return true;
    CHECK(detail.message != NULL && detail.message[0] != 0);
    return false;
}

/* ---- the node's part ---- */

static bool same_outcome(const struct outcome *a, const struct outcome *b, struct slice body)
{
    return a->kind == b->kind && a->version == b->version && slice_equal(b->body, body);
}

/* A committed operation asked for again has the same outcome, and says so. */
static void commit_twice(struct target *t, struct slice body)
{
    struct fixture *f = &t->fixture;
    struct op op;
    struct buf first_body = { 0 };

    CHECK(op_decode(body, &op) == ERR_OK);
    fixture_commit(f, body);
    struct outcome first = f->outcome;
    buf_append(&first_body, first.body.data, first.body.size);
    if (op.id.text.size > 0 && first.kind == OUTCOME_COMMITTED) {
        fixture_commit(f, body);
        CHECK(f->outcome.duplicate);
        CHECK(same_outcome(&first, &f->outcome, buf_slice(&first_body)));
    }
    buf_deinit(&first_body);
}

static void mutate(struct target *t, const struct method_info *method, struct slice request)
{
    struct refusal refusal;
    struct buf body = { 0 };
    struct buf again = { 0 };

    const struct applier_asked asked = { method->id, request, t->fixture.now_ms, &t->arena };

    if (applier_prepare(t->fixture.applier, &asked, &body, &refusal) == ERR_OK) {
        CHECK(applier_prepare(t->fixture.applier, &asked, &again, &refusal) == ERR_OK);
        CHECK(slice_equal(buf_slice(&body), buf_slice(&again)));
        commit_twice(t, buf_slice(&body));
    } else {
        CHECK(refusal.message != NULL && refusal.message[0] != 0);
    }
    buf_deinit(&body);
    buf_deinit(&again);
}

static void carry_out(struct target *t, const struct method_info *method,
                      const ProtobufCMessage *message)
{
    struct buf request = { 0 };

    proto_encode(message, &request);
    if (method->route == METHOD_MUTATION || method->route == METHOD_SHARD_WRITE)
        mutate(t, method, buf_slice(&request));
    else
        (void)fixture_read(&t->fixture, method->id, message);
    (void)fixture_pass(&t->fixture, 1000);
    buf_deinit(&request);
}

/* The same request in either JSON is the same operation: its payload's hash is over these bytes.
 * (Fields that protobuf brought and this program does not know are in neither.) */
static void check_forms(struct target *t, const ProtobufCMessage *message)
{
    struct codec_scope scope = { .arena = &t->arena,
                                 .size_bytes_max = 1u << 20,
                                 .memory_bytes_max = 64u << 20 };
    struct buf json = { 0 }, requests[2] = { { 0 }, { 0 } };
    ProtobufCMessage *copy = NULL;

    for (int plain = 0; plain < 2; plain++) {
        scope.form = plain == 1 ? JSON_PLAIN : JSON_CANONICAL;
        buf_clear(&json);
        json_encode(&t->codec, scope.form, message, &json);
        CHECK(json_decode(&t->codec, message->descriptor, buf_slice(&json), &scope, &copy) ==
              ERR_OK);
        proto_encode(copy, &requests[plain]);
    }
    CHECK(slice_equal(buf_slice(&requests[0]), buf_slice(&requests[1])));
    buf_deinit(&json);
    buf_deinit(&requests[0]);
    buf_deinit(&requests[1]);
}

/* The router's form of it goes to the node. */
static void in_node_form(struct target *t, const struct method_info *method,
                         const ProtobufCMessage *given)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    const ProtobufCMessage *message;

    if (node_form_make(method, given, &t->arena, &message, &detail) != ERR_OK) {
        CHECK(detail.message != NULL && detail.message[0] != 0);
        return;
    }
    if (method->id == METHOD_SWAP)
        method = method_find(method->element);
    if (route(t, method, message))
        carry_out(t, method, message);
}

static void one_request(struct target *t, const struct method_info *method, unsigned form,
                        struct slice bytes)
{
    struct codec_scope scope = { .arena = &t->arena,
                                 .form = form == FORM_PLAIN_JSON ? JSON_PLAIN : JSON_CANONICAL };
    ProtobufCMessage *message = NULL;
    err e = form != FORM_PROTO ? json_decode(&t->codec, method->request, bytes, &scope, &message)
                               : proto_decode(method->request, bytes, &scope, &message);

    if (e == ERR_OK)
        check_forms(t, message);
    else
        CHECK(scope.error.message[0] != 0);
    if (e == ERR_OK)
        in_node_form(t, method, message);
    arena_reset(&t->arena);
}

void fuzz_one(struct slice input)
{
    static struct target t;
    struct reader reader = reader_from(input);
    size_t count;
    const struct method_info *all = method_all(&count);

    t = (struct target){ 0 };
    fixture_init_shard(&t.fixture, SHARD, SHARDS);
    json_codec_init(&t.codec);
    for (unsigned i = 0; i < REQUESTS_MAX && reader_left(&reader) >= 4; i++) {
        const struct method_info *method = &all[read_u8(&reader) % count];
        unsigned form = read_u8(&reader) % FORMS;
        size_t size = read_u16(&reader);
        size_t left = reader_left(&reader);
        one_request(&t, method, form, read_raw(&reader, size < left ? size : left));
    }
    fixture_checkpoint(&t.fixture);
    fixture_restart(&t.fixture);
    json_codec_deinit(&t.codec);
    arena_deinit(&t.arena);
    fixture_deinit(&t.fixture);
}

/* ---- seeds ---- */

static void put_in_form(struct buf *out, enum method_id id, unsigned form, const char *json)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    uint8_t place = 0;

    while (all[place].id != id)
        place++;
    buf_put_u8(out, place);
    buf_put_u8(out, (uint8_t)form);
    buf_put_u16(out, (uint16_t)strlen(json));
    buf_append(out, json, strlen(json));
}

static void put_request(struct buf *out, enum method_id id, const char *json)
{
    put_in_form(out, id, FORM_JSON, json);
}

struct example {
    const char *name;
    enum method_id id;
    const char *json;
};

#define OP       "\"playerId\":\"42\",\"opId\":\"01976e00-0000-7000-8000-000000000001\","
#define SYSTEM   "\"authority\":\"system:payments\","
#define UNHELD   "\"authority\":\"unheld\","
#define UID      "00010000000000010000000000050000"
#define CURRENCY "\"currencies\":[{\"currency\":\"gold\",\"amount\":\"5\"}]"

static const struct example examples[] = {
    { "start", METHOD_START_SESSION,
      "{" OP "\"incarnation\":\"1-100\",\"mode\":\"START_MODE_STEAL\",\"graceMs\":100,"
      "\"include\":[\"sections.a\",\"balances\",\"items\",\"mail\"]}" },
    { "end", METHOD_END_SESSION,
      "{" OP "\"authority\":\"session:1-100-1\",\"edits\":[{\"name\":\"a\","
      "\"replace\":\"{}\"}]}" },
    { "profile", METHOD_GET_PROFILE,
      "{\"playerId\":\"42\",\"include\":[\"sections.a\",\"items\",\"mail\"]}" },
    { "update", METHOD_UPDATE_PROFILE,
      "{" OP UNHELD "\"edits\":[{\"name\":\"a\",\"replace\":\"{\\\"x\\\":1}\"},{\"name\":\"b\","
      "\"patch\":{\"steps\":[{\"kind\":\"PATCH_KIND_SET\",\"path\":\"/a\",\"json\":\"1\"}]}}]}" },
    { "grant", METHOD_GRANT, "{" OP SYSTEM CURRENCY ",\"items\":[{\"kind\":\"sword\"}]}" },
    { "spend", METHOD_SPEND, "{" OP UNHELD CURRENCY "}" },
    { "balances", METHOD_GET_BALANCES, "{\"playerId\":\"42\"}" },
    { "entries", METHOD_LIST_ENTRIES, "{\"playerId\":\"42\",\"pageSize\":2}" },
    { "grant-items", METHOD_GRANT,
      "{" OP SYSTEM "\"items\":[{\"kind\":\"s\",\"attributes\":\"{}\"}]}" },
    { "items", METHOD_LIST_ITEMS, "{\"playerId\":\"42\",\"pageSize\":2}" },
    { "operation", METHOD_GET_OPERATION,
      "{\"entity\":\"player:42\",\"opId\":\"01976e00-0000-7000-8000-000000000001\"}" },
    { "resolve", METHOD_RESOLVE_OPERATION,
      "{\"entity\":\"player:42\",\"opId\":\"receipt:a\",\"seal\":true}" },
    { "session", METHOD_GET_SESSION, "{\"playerId\":\"42\"}" },
    { "batch", METHOD_BATCH_GRANT, "{\"requests\":[{" OP SYSTEM CURRENCY "},{}]}" },
    { "batch-get", METHOD_BATCH_GET_PROFILE, "{\"requests\":[{\"playerId\":\"42\"}]}" },
    { "renew", METHOD_RENEW_TOKENS,
      "{\"shard\":7,\"incarnation\":\"1-100\",\"tokens\":[{\"position\":1}]}" },
    { "expire", METHOD_EXPIRE_SERVER,
      "{\"shard\":7,\"incarnation\":\"1-100\",\"lowestLive\":\"1-50\"}" },
    { "pay", METHOD_TRANSFER_CURRENCIES, "{" OP UNHELD CURRENCY ",\"toPlayerId\":\"43\"}" },
    { "pay-away", METHOD_TRANSFER_CURRENCIES, "{" OP UNHELD CURRENCY ",\"toPlayerId\":\"44\"}" },
    { "spend-items", METHOD_SPEND,
      "{" OP UNHELD CURRENCY ",\"itemUids\":[\"" UID "\"],\"reason\":\"decay\"}" },
    { "reverse", METHOD_REVERSE_ENTRY,
      "{" OP SYSTEM "\"targetOpId\":\"claim:t\",\"targetSeq\":\"1\",\"reason\":\"r\"}" },
    { "reserve", METHOD_RESERVE_CURRENCIES, "{" OP UNHELD CURRENCY ",\"expiresInMs\":\"1000\"}" },
    { "post", METHOD_POST_RESERVATION,
      "{" OP UNHELD CURRENCY ",\"reserveOpId\":\"claim:t\",\"reserveSeq\":\"1\",\"toPlayerId\":"
      "\"43\"}" },
    { "void", METHOD_VOID_RESERVATION, "{" OP SYSTEM "\"reserveOpId\":\"claim:t\"}" },
    { "entries", METHOD_LIST_ENTRIES,
      "{\"playerId\":\"42\",\"kinds\":[\"LEDGER_KIND_GRANT\"],\"itemUid\":\"" UID
      "\",\"opId\":\"claim:t\",\"fromMs\":\"1\",\"toMs\":\"9\"}" },
    { "history", METHOD_ITEM_HISTORY,
      "{\"shard\":7,\"itemUid\":\"" UID "\",\"afterStep\":1,\"limit\":9}" },
    { "give", METHOD_TRANSFER_ITEMS,
      "{" OP UNHELD "\"toPlayerId\":\"43\",\"itemUids\":[\"" UID "\"]}" },
    { "send", METHOD_SEND_MAIL, "{" OP UNHELD CURRENCY ",\"text\":\"t\",\"toPlayerId\":\"43\"}" },
    { "deliver-mail", METHOD_DELIVER_TO_PLAYER,
      "{" OP SYSTEM CURRENCY ",\"text\":\"t\",\"items\":[{\"kind\":\"hat\"}]}" },
    { "deliver-all", METHOD_DELIVER_MAIL,
      "{\"toPlayerIds\":[\"42\",\"43\"],\"opId\":\"season:3\"," SYSTEM CURRENCY "}" },
    { "swap", METHOD_SWAP,
      "{\"opId\":\"claim:s\",\"a\":{\"playerId\":\"43\"," UNHELD "\"gives\":{" CURRENCY
      "}},\"b\":{\"playerId\":\"42\"," UNHELD "\"gives\":{\"itemUids\":[\"" UID "\"]}}}" },
    { "mails", METHOD_LIST_MAIL, "{\"playerId\":\"42\",\"pageSize\":2}" },
    { "claim", METHOD_CLAIM_MAIL, "{" OP UNHELD "\"mailIds\":[\"" UID "\"]}" },
    { "return", METHOD_RETURN_EXPIRED_MAIL, "{" OP SYSTEM "\"max\":3}" },
    { "deliver", METHOD_CHANNEL_DELIVER,
      "{\"shard\":7,\"source\":3,\"watermark\":\"1\",\"credits\":[{\"seq\":\"2\",\"opId\":\"claim:"
      "a\","
      "\"payloadHash\":\"AAECAwQFBgcICQoLDA0ODw==\",\"toPlayerId\":\"43\",\"mail\":{"
      "\"fromPlayerId\":\"44\"," CURRENCY ",\"items\":[{\"uid\":\"" UID "\",\"kind\":\"s\"}]}}],"
      "\"cancels\":[\"3\"]}" },
    { "policy", METHOD_APPLY_POLICY,
      "{\"shard\":7,\"policy\":{\"version\":\"9\",\"currencies\":[{\"name\":\"gold\","
      "\"maxBalance\":\"9\"}]}}" },
};

static const struct example plain_examples[] = {
    { "start", METHOD_START_SESSION,
      "{" OP "\"incarnation\":\"1-100\",\"mode\":\"steal\",\"graceMs\":100}" },
    { "grant", METHOD_GRANT,
      "{\"playerId\":\"42\",\"opId\":\"claim:p\"," SYSTEM
      "\"currencies\":{\"gold\":5,\"gems\":\"1\"},"
      "\"items\":[{\"kind\":\"sword\",\"attributes\":{\"level\":[1,{}]}}]}" },
    { "update", METHOD_UPDATE_PROFILE,
      "{\"playerId\":\"42\",\"opId\":\"claim:u\"," UNHELD
      "\"edits\":{\"a\":{\"replace\":{\"x\":1}},\"b\":{\"merge\":[],\"remove\":[\"/x\"]},"
      "\"c\":{\"patch\":[{\"path\":\"/x\",\"increment\":40},{\"path\":\"/y\",\"remove\":true},"
      "{\"path\":\"/z\",\"set\":\"t\"},{\"path\":\"/w\",\"add\":[1]}]}}}" },
    { "profile", METHOD_GET_PROFILE, "{\"playerId\":\"42\",\"read\":{\"consistency\":\"stale\"}}" },
};

void fuzz_seed(struct fuzz_seeds *seeds)
{
    struct buf all = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
        struct buf one = { 0 };
        put_request(&one, examples[i].id, examples[i].json);
        put_request(&one, METHOD_GET_PROFILE, "{\"playerId\":\"42\"}");
        fuzz_seed_add(seeds, examples[i].name, buf_slice(&one));
        buf_deinit(&one);
        if (i < REQUESTS_MAX)
            put_request(&all, examples[i].id, examples[i].json);
    }
    fuzz_seed_add(seeds, "series", buf_slice(&all));
    buf_clear(&all);
    for (size_t i = 0; i < ARRAY_SIZE(plain_examples); i++)
        put_in_form(&all, plain_examples[i].id, FORM_PLAIN_JSON, plain_examples[i].json);
    fuzz_seed_add(seeds, "plain", buf_slice(&all));
    buf_clear(&all);
    put_request(&all, METHOD_GRANT, "{" OP SYSTEM CURRENCY "}");
    put_request(&all, METHOD_TRANSFER_CURRENCIES,
                "{\"playerId\":\"42\",\"opId\":\"claim:t\"," UNHELD CURRENCY
                ",\"toPlayerId\":\"44\"}");
    put_request(&all, METHOD_RESOLVE_OPERATION,
                "{\"entity\":\"player:42\",\"opId\":\"claim:t\",\"seal\":true}");
    fuzz_seed_add(seeds, "sealed-transfer", buf_slice(&all));
    buf_clear(&all);
    put_request(&all, METHOD_GRANT,
                "{\"playerId\":\"42\",\"opId\":\"claim:t\"," SYSTEM CURRENCY
                ",\"items\":[{\"kind\":\"sword\"}]}");
    put_request(&all, METHOD_REVERSE_ENTRY,
                "{" OP SYSTEM "\"targetOpId\":\"claim:t\",\"reason\":\"r\"}");
    fuzz_seed_add(seeds, "reversed-grant", buf_slice(&all));
    buf_clear(&all);
    put_request(&all, METHOD_GRANT, "{" OP SYSTEM CURRENCY ",\"items\":[{\"kind\":\"sword\"}]}");
    put_request(&all, METHOD_TRANSFER_ITEMS,
                "{\"playerId\":\"42\",\"opId\":\"claim:t\"," UNHELD
                "\"toPlayerId\":\"43\",\"itemUids\":[\"" UID "\"]}");
    fuzz_seed_add(seeds, "granted-and-given", buf_slice(&all));
    buf_deinit(&all);
}
