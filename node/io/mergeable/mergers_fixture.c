#include "node/io/mergeable/mergers_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/v1/presence.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/proto_scan.h"
#include "node/core/mergeable/message.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"
#include "runtime/link/frame.h"

static void ignore(void *sink, enum log_level level, const char *event,
                   const struct log_field *fields)
{
    (void)sink;
    (void)level;
    (void)event;
    (void)fields;
}
const struct log world_log = { .write = ignore };

/* ---- the network ---- */

static uint32_t copies_of(struct world *w, size_t bytes)
{
    if (bytes < 1024 * 1024)
        return 1;
    w->large++;
    if (w->lose_large == 0)
        return w->large_twice ? 2 : 1;
    w->lose_large--;
    return 0;
}

static void put_on_its_way(struct member *member, uint64_t replica, struct slice bytes)
{
    struct world *w = member->world;
    struct message *message = mem_zalloc(sizeof *message);

    message->from = member->id;
    message->to = replica;
    buf_append(&message->bytes, bytes.data, bytes.size);
    *w->last = message;
    w->last = &message->next;
    loop_hook_arm(&w->hook);
}

static void on_send(void *user, uint64_t replica, struct slice bytes)
{
    struct member *member = user;
    struct world *w = member->world;

    assert_true(bytes.size <= FRAME_BODY_SIZE_MAX);
    if (bytes.size > HEAD_BOOT + 8 && bytes.data[0] < MERGE_KIND_END)
        w->heard_boots[member->id - 1] = load_u64(bytes.data + HEAD_BOOT);
    for (uint32_t copies = copies_of(w, bytes.size); copies > 0; copies--)
        put_on_its_way(member, replica, bytes);
}

static void deliver(void *user)
{
    struct world *w = user;
    struct message *list = w->first;

    w->first = NULL;
    w->last = &w->first;
    while (list != NULL) {
        struct message *message = list;
        struct member *to = &w->members[message->to - 1];

        list = message->next;
        if (to->mergers != NULL && message->from != w->cut && message->to != w->cut)
            assert_int_equal(
                mergers_message(to->mergers, message->from, buf_slice(&message->bytes)), ERR_OK);
        buf_deinit(&message->bytes);
        free(message);
    }
}

/* ---- members ---- */

static bool on_takes(void *user, uint64_t replica)
{
    return ((struct member *)user)->world->old != replica;
}

static bool on_restored(void *user, uint32_t shard, struct mergers_restored *ret_restored)
{
    (void)shard;
    *ret_restored = ((struct member *)user)->restored;
    return ret_restored->generation != 0;
}

static void on_answer(void *user, uint64_t call, const struct shard_reply *reply, struct slice body)
{
    struct answered *answered = &((struct member *)user)->world->answered;

    assert_int_equal(call, 7);
    answered->is_there = true;
    answered->status = reply->status;
    buf_clear(&answered->body);
    buf_append(&answered->body, body.data, body.size);
}

void world_define(struct mergers *mergers)
{
    Holdfast__Internal__V1__DefinitionVersion version =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__DocumentsBody documents = HOLDFAST__V1__DOCUMENTS_BODY__INIT;
    uint8_t bytes[256];

    documents.policy = HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_VECTOR;
    documents.bytes_max = DOCUMENT_BYTES_MAX;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS;
    body.documents = &documents;
    version.number = 1;
    version.version = 1;
    version.name = text_lend("rooms");
    version.body = &body;
    size_t size = protobuf_c_message_pack(&version.base, bytes);
    mergers_definition(mergers, (struct slice){ bytes, size });
    mergers_definitions_complete(mergers);
}

void world_start(struct world *w, uint32_t place)
{
    static const uint8_t secret[MERGERS_SECRET_BYTES] = { 9 };
    struct member *member = &w->members[place];
    char text[MERGERS_TEXT_BYTES] = "";

    if (mergers_new(&(struct mergers_options){ .loop = w->loop,
                                               .log = &world_log,
                                               .directory = member->directory,
                                               .space = member->space,
                                               .erasures = member->erasures,
                                               .self = member->id,
                                               .boot = ++w->boot,
                                               .shard_count = 4,
                                               .living = &w->living,
                                               .send = on_send,
                                               .takes = on_takes,
                                               .restored = on_restored,
                                               .leave_wait_ms = w->leave_wait_ms,
                                               .answer = on_answer,
                                               .user = member },
                    &member->mergers, text) != ERR_OK)
        fail_msg("%s", text);
    world_define(member->mergers);
    mergers_secret(member->mergers, secret);
    mergers_record(member->mergers, SHARD, &w->record);
}

void world_stop(struct world *w, uint32_t place)
{
    mergers_free(w->members[place].mergers);
    w->members[place].mergers = NULL;
}

void world_tell_all(struct world *w)
{
    w->record.membership.config++;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (w->members[i].mergers != NULL)
            mergers_record(w->members[i].mergers, SHARD, &w->record);
    }
}

int world_setup(void **state)
{
    struct world *w = mem_zalloc(sizeof *w);

    assert_int_equal(loop_new(&w->loop), ERR_OK);
    test_directory_make("mergers", w->directory);
    w->last = &w->first;
    w->leave_wait_ms = 3 * PATIENCE_MS;
    loop_hook_init(&w->hook, w->loop, deliver, w);
    w->record = (struct rep_record){
        .generation = 1,
        .epoch = 1,
        .owner = 1,
        .membership = { .config = 1, .count = 3, .members = { 1, 2, 3 } },
    };
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct member *member = &w->members[i];
        member->world = w;
        member->id = i + 1;
        member->erasures = erasures_new(4);
        member->restored.generation = MERGERS_GENERATION_FIRST;
        snprintf(member->directory, sizeof member->directory, "%s/%u", w->directory, i + 1);
        world_start(w, i);
    }
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    struct world *w = *state;

    for (uint32_t i = 0; i < MEMBERS; i++) {
        world_stop(w, i);
        erasures_free(w->members[i].erasures);
    }
    deliver(w);
    loop_hook_disarm(&w->hook);
    loop_free(w->loop);
    test_directory_remove(w->directory);
    buf_deinit(&w->answered.body);
    living_deinit(&w->living);
    free(w);
    return 0;
}

/* ---- calls ---- */

bool world_has_answer(void *user)
{
    return ((struct world *)user)->answered.is_there;
}

enum reply_status world_call(struct world *w, uint32_t place, uint32_t method,
                             const ProtobufCMessage *message)
{
    struct buf bytes = { 0 };

    bytes.size = protobuf_c_message_pack(
        message, buf_reserve(&bytes, protobuf_c_message_get_packed_size(message)));
    w->answered.is_there = false;
    err e =
        mergers_call(w->members[place].mergers,
                     &(struct mergers_request){
                         .shard = SHARD, .method = method, .call = 7, .bytes = buf_slice(&bytes) });
    buf_deinit(&bytes);
    if (e == ERR_NOT_FOUND)
        return REPLY_NOT_OWNER;
    assert_int_equal(e, ERR_OK);
    if (!loop_run_until(w->loop, world_has_answer, w, PATIENCE_MS))
        fail_msg("no answer in time");
    return w->answered.status;
}

void world_refused_as(const struct world *w, Holdfast__V1__ErrorCode code)
{
    Holdfast__Internal__V1__Refusal *refusal =
        holdfast__internal__v1__refusal__unpack(NULL, w->answered.body.size, w->answered.body.data);

    assert_int_equal(w->answered.status, REPLY_REFUSED);
    assert_non_null(refusal);
    assert_int_equal(refusal->code, code);
    holdfast__internal__v1__refusal__free_unpacked(refusal, NULL);
}

enum reply_status world_put(struct world *w, uint32_t place, const char *key, const char *json)
{
    Holdfast__V1__PutDocumentRequest request = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;
    char op_id[40];

    snprintf(op_id, sizeof op_id, "key:%llu", (unsigned long long)++w->ops);
    request.entity = text_lend("player:7");
    request.op_id = op_id;
    request.collection = text_lend("rooms");
    request.key = text_lend(key);
    request.json = text_lend(json);
    return world_call(w, place, METHOD_PUT_DOCUMENT, &request.base);
}

size_t world_count(struct world *w, uint32_t place, const char *key,
                   Holdfast__V1__DocumentConsistency consistency)
{
    Holdfast__V1__GetDocumentRequest request = HOLDFAST__V1__GET_DOCUMENT_REQUEST__INIT;
    size_t found = 0;

    request.entity = text_lend("player:7");
    request.collection = text_lend("rooms");
    request.key = text_lend(key);
    request.consistency = consistency;
    if (world_call(w, place, METHOD_GET_DOCUMENT, &request.base) != REPLY_OK)
        return 0;
    Holdfast__V1__GetDocumentResponse *response = holdfast__v1__get_document_response__unpack(
        NULL, w->answered.body.size, w->answered.body.data);
    if (response->document != NULL)
        found = response->document->n_siblings > 0 ? response->document->n_siblings : 1;
    holdfast__v1__get_document_response__free_unpacked(response, NULL);
    return found;
}

void world_eventually(struct world *w, uint32_t place, const char *key, size_t wanted)
{
    uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS;

    while (world_count(w, place, key,
                       HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_ANY) != wanted) {
        if (loop_now_ms(w->loop) > end_ms)
            fail_msg("member %u never had %zu of %s", place + 1, wanted, key);
        w->answered.is_there = false;
        (void)loop_run_until(w->loop, world_has_answer, w, 50);
    }
}

size_t world_count_any(struct world *w, uint32_t place, const char *key)
{
    return world_count(w, place, key, HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_ANY);
}

size_t world_listed(struct world *w, uint32_t place)
{
    Holdfast__V1__ListDocumentsRequest request = HOLDFAST__V1__LIST_DOCUMENTS_REQUEST__INIT;

    request.entity = text_lend("player:7");
    request.collection = text_lend("rooms");
    assert_int_equal(world_call(w, place, METHOD_LIST_DOCUMENTS, &request.base), REPLY_OK);
    Holdfast__V1__ListDocumentsResponse *response = holdfast__v1__list_documents_response__unpack(
        NULL, w->answered.body.size, w->answered.body.data);
    size_t found = response->n_documents;

    holdfast__v1__list_documents_response__free_unpacked(response, NULL);
    return found;
}

void world_erased(struct world *w, uint32_t place, uint64_t number, bool hides, bool purges)
{
    struct shard_erasure erasure = {
        .number = number, .hides = hides, .purges = purges, .entity_size = 8
    };

    memcpy(erasure.entity, "player:7", 8);
    erasures_set(w->members[place].erasures, SHARD, &erasure);
}

enum reply_status world_set_presence(struct world *w, uint32_t place, const char *player,
                                     const char *incarnation)
{
    Holdfast__V1__SetPresenceRequest request = HOLDFAST__V1__SET_PRESENCE_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = text_lend("key:set");
    request.connection = text_lend("game");
    request.incarnation = text_lend(incarnation);
    return world_call(w, place, METHOD_SET_PRESENCE, &request.base);
}

bool world_is_online(struct world *w, uint32_t place, const char *player)
{
    Holdfast__V1__GetPresenceRequest request = HOLDFAST__V1__GET_PRESENCE_REQUEST__INIT;

    request.player_id = text_lend(player);
    assert_int_equal(world_call(w, place, METHOD_GET_PRESENCE, &request.base), REPLY_OK);
    return w->answered.body.size > 0;
}

uint64_t world_presences(struct world *w, uint32_t place)
{
    struct mergers_stats stats;

    mergers_stats_get(w->members[place].mergers, &stats);
    return stats.records[MERGE_POLICY_MERGE];
}

void world_wait_for_presences(struct world *w, uint64_t wanted)
{
    uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS;

    for (uint32_t place = 0; place < 3; place++) {
        while (world_presences(w, place) != wanted) {
            if (loop_now_ms(w->loop) > end_ms)
                fail_msg("member %u never had %u presences", place + 1, (unsigned)wanted);
            w->answered.is_there = false;
            (void)loop_run_until(w->loop, world_has_answer, w, 50);
        }
    }
}

void world_name_player(bool here, unsigned from, char ret_name[16])
{
    char entity[72];

    do {
        snprintf(ret_name, 16, "p%u", from++);
        snprintf(entity, sizeof entity, "player:%s", ret_name);
    } while ((shard_of_entity(slice_from_text(entity), 4) == SHARD) != here);
}

void world_results(const struct world *w, char ret_kinds[16])
{
    struct reader reader =
        reader_from((struct slice){ w->answered.body.data, w->answered.body.size });
    struct proto_field field;
    size_t count = 0;

    while (proto_scan_next(&reader, &field) && count < 15)
        ret_kinds[count++] = field.bytes.data[0] == 0x0a ? 'r' : 'e';
    assert_true(proto_scan_ended(&reader));
    ret_kinds[count] = 0;
}
