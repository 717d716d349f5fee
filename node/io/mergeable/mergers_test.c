/*
 * Three members in one process, each with a disk of its own, and a network that may be cut: what is
 * acknowledged is there after restarts, damage, cuts and changes of members.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/v1/document.pb-c.h"
#include "holdfast/v1/presence.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/codec/proto_scan.h"
#include "node/io/mergeable/mergers.h"
#include "node/store/merge_db.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"
#include "runtime/cluster/placement.h"

#define MEMBERS     4u /* Three of a shard, and one that takes a place. */
#define SHARD       1u
#define PATIENCE_MS 20000u
#define WRITES_MS   10000u
#define HEAD_BOOT   25u /* Where a message has its sender's boot. */

struct world;

struct member {
    struct world *world;
    uint64_t id;
    char directory[TEST_DIRECTORY_BYTES + 32];
    struct mergers *mergers;   /* NULL: it is down. */
    struct erasures *erasures; /* What its strict log says. */
    struct space *space;       /* NULL: its disk always has room. */
};

/* The answer to the last call. */
struct answered {
    bool is_there;
    enum reply_status status;
    struct buf body;
};

struct message {
    struct message *next;
    uint64_t from, to;
    struct buf bytes;
};

struct world {
    struct loop *loop;
    char directory[TEST_DIRECTORY_BYTES];
    struct member members[MEMBERS];
    struct message *first, **last; /* On their way. */
    struct loop_hook hook;
    uint64_t old;                  /* Whose program knows no documents. */
    uint64_t cut;                  /* Whom no message reaches, and none leaves. */
    uint64_t heard_boots[MEMBERS]; /* Of what each sent last. */
    uint64_t boot;
    uint64_t leave_wait_ms;
    uint64_t ops;
    struct living living; /* All members know the same game servers. */
    struct rep_record record;
    struct answered answered;
};

static void ignore(void *sink, enum log_level level, const char *event,
                   const struct log_field *fields)
{
    (void)sink;
    (void)level;
    (void)event;
    (void)fields;
}
static const struct log quiet = { .write = ignore };

/* ---- the network ---- */

static void on_send(void *user, uint64_t replica, struct slice bytes)
{
    struct member *member = user;
    struct world *w = member->world;
    struct message *message = mem_zalloc(sizeof *message);

    if (bytes.size > HEAD_BOOT + 8)
        w->heard_boots[member->id - 1] = load_u64(bytes.data + HEAD_BOOT);
    message->from = member->id;
    message->to = replica;
    buf_append(&message->bytes, bytes.data, bytes.size);
    *w->last = message;
    w->last = &message->next;
    loop_hook_arm(&w->hook);
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

static void on_answer(void *user, uint64_t call, const struct shard_reply *reply, struct slice body)
{
    struct answered *answered = &((struct member *)user)->world->answered;

    assert_int_equal(call, 7);
    answered->is_there = true;
    answered->status = reply->status;
    buf_clear(&answered->body);
    buf_append(&answered->body, body.data, body.size);
}

static void define(struct mergers *mergers)
{
    Holdfast__Internal__V1__DefinitionVersion version =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__DocumentsBody documents = HOLDFAST__V1__DOCUMENTS_BODY__INIT;
    uint8_t bytes[256];

    documents.policy = HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_VECTOR;
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

static void start(struct world *w, uint32_t place)
{
    static const uint8_t secret[MERGERS_SECRET_BYTES] = { 9 };
    struct member *member = &w->members[place];
    char text[MERGERS_TEXT_BYTES] = "";

    if (mergers_new(&(struct mergers_options){ .loop = w->loop,
                                               .log = &quiet,
                                               .directory = member->directory,
                                               .space = member->space,
                                               .erasures = member->erasures,
                                               .self = member->id,
                                               .boot = ++w->boot,
                                               .shard_count = 4,
                                               .living = &w->living,
                                               .send = on_send,
                                               .takes = on_takes,
                                               .leave_wait_ms = w->leave_wait_ms,
                                               .answer = on_answer,
                                               .user = member },
                    &member->mergers, text) != ERR_OK)
        fail_msg("%s", text);
    define(member->mergers);
    mergers_secret(member->mergers, secret);
    mergers_record(member->mergers, SHARD, &w->record);
}

static void stop(struct world *w, uint32_t place)
{
    mergers_free(w->members[place].mergers);
    w->members[place].mergers = NULL;
}

static void tell_all(struct world *w)
{
    w->record.membership.config++;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (w->members[i].mergers != NULL)
            mergers_record(w->members[i].mergers, SHARD, &w->record);
    }
}

static int setup(void **state)
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
        snprintf(member->directory, sizeof member->directory, "%s/%u", w->directory, i + 1);
        start(w, i);
    }
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    for (uint32_t i = 0; i < MEMBERS; i++) {
        stop(w, i);
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

static bool has_answer(void *user)
{
    return ((struct world *)user)->answered.is_there;
}

static enum reply_status call(struct world *w, uint32_t place, uint32_t method,
                              const ProtobufCMessage *message)
{
    uint8_t bytes[1024];
    size_t size = protobuf_c_message_pack(message, bytes);

    w->answered.is_there = false;
    err e =
        mergers_call(w->members[place].mergers,
                     &(struct mergers_request){
                         .shard = SHARD, .method = method, .call = 7, .bytes = { bytes, size } });
    if (e == ERR_NOT_FOUND)
        return REPLY_NOT_OWNER;
    assert_int_equal(e, ERR_OK);
    if (!loop_run_until(w->loop, has_answer, w, PATIENCE_MS))
        fail_msg("no answer in time");
    return w->answered.status;
}

/* The last answer is a refusal. */
static void refused_as(const struct world *w, Holdfast__V1__ErrorCode code)
{
    Holdfast__Internal__V1__Refusal *refusal =
        holdfast__internal__v1__refusal__unpack(NULL, w->answered.body.size, w->answered.body.data);

    assert_int_equal(w->answered.status, REPLY_REFUSED);
    assert_non_null(refusal);
    assert_int_equal(refusal->code, code);
    holdfast__internal__v1__refusal__free_unpacked(refusal, NULL);
}

static enum reply_status put(struct world *w, uint32_t place, const char *key, const char *json)
{
    Holdfast__V1__PutDocumentRequest request = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;
    char op_id[40];

    snprintf(op_id, sizeof op_id, "key:%llu", (unsigned long long)++w->ops);
    request.entity = text_lend("player:7");
    request.op_id = op_id;
    request.collection = text_lend("rooms");
    request.key = text_lend(key);
    request.json = text_lend(json);
    return call(w, place, METHOD_PUT_DOCUMENT, &request.base);
}

/* How many siblings there are of it; 0: there is none. */
static size_t count(struct world *w, uint32_t place, const char *key,
                    Holdfast__V1__DocumentConsistency consistency)
{
    Holdfast__V1__GetDocumentRequest request = HOLDFAST__V1__GET_DOCUMENT_REQUEST__INIT;
    size_t found = 0;

    request.entity = text_lend("player:7");
    request.collection = text_lend("rooms");
    request.key = text_lend(key);
    request.consistency = consistency;
    if (call(w, place, METHOD_GET_DOCUMENT, &request.base) != REPLY_OK)
        return 0;
    Holdfast__V1__GetDocumentResponse *response = holdfast__v1__get_document_response__unpack(
        NULL, w->answered.body.size, w->answered.body.data);
    if (response->document != NULL)
        found = response->document->n_siblings > 0 ? response->document->n_siblings : 1;
    holdfast__v1__get_document_response__free_unpacked(response, NULL);
    return found;
}

static void eventually(struct world *w, uint32_t place, const char *key, size_t wanted)
{
    uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS;

    while (count(w, place, key, HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_ANY) !=
           wanted) {
        if (loop_now_ms(w->loop) > end_ms)
            fail_msg("member %u never had %zu of %s", place + 1, wanted, key);
        w->answered.is_there = false;
        (void)loop_run_until(w->loop, has_answer, w, 50);
    }
}

static size_t count_any(struct world *w, uint32_t place, const char *key)
{
    return count(w, place, key, HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_ANY);
}

/* How many documents a list of the entity has. */
static size_t listed(struct world *w, uint32_t place)
{
    Holdfast__V1__ListDocumentsRequest request = HOLDFAST__V1__LIST_DOCUMENTS_REQUEST__INIT;

    request.entity = text_lend("player:7");
    request.collection = text_lend("rooms");
    assert_int_equal(call(w, place, METHOD_LIST_DOCUMENTS, &request.base), REPLY_OK);
    Holdfast__V1__ListDocumentsResponse *response = holdfast__v1__list_documents_response__unpack(
        NULL, w->answered.body.size, w->answered.body.data);
    size_t found = response->n_documents;

    holdfast__v1__list_documents_response__free_unpacked(response, NULL);
    return found;
}

/* The member's strict log says so of player 7. */
static void erased(struct world *w, uint32_t place, uint64_t number, bool hides, bool purges)
{
    struct shard_erasure erasure = {
        .number = number, .hides = hides, .purges = purges, .entity_size = 8
    };

    memcpy(erasure.entity, "player:7", 8);
    erasures_set(w->members[place].erasures, SHARD, &erasure);
}

static enum reply_status set_presence(struct world *w, uint32_t place, const char *player,
                                      const char *incarnation)
{
    Holdfast__V1__SetPresenceRequest request = HOLDFAST__V1__SET_PRESENCE_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = text_lend("key:set");
    request.connection = text_lend("game");
    request.incarnation = text_lend(incarnation);
    return call(w, place, METHOD_SET_PRESENCE, &request.base);
}

static bool is_online(struct world *w, uint32_t place, const char *player)
{
    Holdfast__V1__GetPresenceRequest request = HOLDFAST__V1__GET_PRESENCE_REQUEST__INIT;

    request.player_id = text_lend(player);
    assert_int_equal(call(w, place, METHOD_GET_PRESENCE, &request.base), REPLY_OK);
    return w->answered.body.size > 0;
}

static uint64_t presences(struct world *w, uint32_t place)
{
    struct mergers_stats stats;

    mergers_stats_get(w->members[place].mergers, &stats);
    return stats.records[MERGE_POLICY_MERGE];
}

static void wait_for_presences(struct world *w, uint64_t wanted)
{
    uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS;

    for (uint32_t place = 0; place < 3; place++) {
        while (presences(w, place) != wanted) {
            if (loop_now_ms(w->loop) > end_ms)
                fail_msg("member %u never had %u presences", place + 1, (unsigned)wanted);
            w->answered.is_there = false;
            (void)loop_run_until(w->loop, has_answer, w, 50);
        }
    }
}

/* The n-th name, from `from` on, whose shard the members have, or have not. */
static void name_player(bool here, unsigned from, char ret_name[16])
{
    char entity[72];

    do {
        snprintf(ret_name, 16, "p%u", from++);
        snprintf(entity, sizeof entity, "player:%s", ret_name);
    } while ((shard_of_entity(slice_from_text(entity), 4) == SHARD) != here);
}

/* 'r' a response, 'e' an error, in the order of the answer. */
static void results(const struct world *w, char ret_kinds[16])
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

/* ---- tests ---- */

static void the_players_of_a_server_that_ended_are_gone_at_once_and_swept_by_the_owner(void **state)
{
    struct world *w = *state;

    living_put(&w->living, (struct incarnation){ 1, 5 }, false);
    living_put(&w->living, (struct incarnation){ 1, 6 }, false);
    living_complete(&w->living);
    assert_int_equal(set_presence(w, 1, "ada", "1-5"), REPLY_OK);
    assert_int_equal(set_presence(w, 1, "bob", "1-6"), REPLY_OK);
    wait_for_presences(w, 2);
    living_remove(&w->living, (struct incarnation){ 1, 5 });
    for (uint32_t place = 0; place < 3; place++) {
        assert_false(is_online(w, place, "ada"));
        assert_true(is_online(w, place, "bob"));
    }
    assert_int_equal(presences(w, 2), 2);
    wait_for_presences(w, 1);
    assert_int_equal(set_presence(w, 2, "ada", "1-5"), REPLY_REFUSED);
}

static void each_element_of_a_batch_is_carried_out_by_itself(void **state)
{
    struct world *w = *state;
    Holdfast__V1__BatchSetPresenceRequest batch = HOLDFAST__V1__BATCH_SET_PRESENCE_REQUEST__INIT;
    Holdfast__V1__SetPresenceRequest requests[4], *list[4];
    char names[4][16], kinds[16];

    for (unsigned i = 0; i < 4; i++) {
        name_player(i != 1, 100 * i, names[i]); /* The second one is of another shard. */
        holdfast__v1__set_presence_request__init(&requests[i]);
        requests[i].player_id = names[i];
        requests[i].op_id = text_lend("key:set");
        requests[i].connection = text_lend(i == 2 ? "no such" : "game");
        requests[i].ttl_ms = 60000;
        list[i] = &requests[i];
    }
    batch.n_requests = 4;
    batch.requests = list;
    assert_int_equal(call(w, 0, METHOD_BATCH_SET_PRESENCE, &batch.base), REPLY_OK);
    results(w, kinds);
    assert_string_equal(kinds, "reer");
    assert_true(is_online(w, 0, names[0]));
    assert_false(is_online(w, 0, names[2]));
    assert_true(is_online(w, 0, names[3]));
    wait_for_presences(w, 2);
    batch.n_requests = 0;
    assert_int_equal(call(w, 0, METHOD_BATCH_SET_PRESENCE, &batch.base), REPLY_REFUSED);
}

static void a_member_lists_its_shards_and_says_which_it_does_not_have(void **state)
{
    struct world *w = *state;
    Holdfast__Internal__V1__ListNodeOnlineRequest request =
        HOLDFAST__INTERNAL__V1__LIST_NODE_ONLINE_REQUEST__INIT;
    uint32_t shards[] = { 0, SHARD };
    uint8_t bytes[64];
    struct buf out = { 0 };

    assert_int_equal(set_presence(w, 1, "ada", "1-10"), REPLY_OK);
    wait_for_presences(w, 1);
    request.n_shards = 2;
    request.shards = shards;
    request.limit = 10;
    request.count = true;
    struct slice asked = { bytes, holdfast__internal__v1__list_node_online_request__pack(&request,
                                                                                         bytes) };

    assert_true(mergers_list_online(w->members[0].mergers, asked, &out));
    Holdfast__Internal__V1__ListNodeOnlineResponse *response =
        holdfast__internal__v1__list_node_online_response__unpack(NULL, out.size, out.data);

    assert_int_equal(response->n_rows, 1);
    assert_string_equal(response->rows[0]->player->player_id, "ada");
    assert_int_equal(response->count, 1);
    assert_int_equal(response->n_missing, 1);
    assert_int_equal(response->missing[0], 0);
    assert_false(response->more);
    holdfast__internal__v1__list_node_online_response__free_unpacked(response, NULL);
    shards[0] = 4; /* There is no such shard. */
    asked.size = holdfast__internal__v1__list_node_online_request__pack(&request, bytes);
    assert_false(mergers_list_online(w->members[0].mergers, asked, &out));
    buf_deinit(&out);
}

static void what_needs_no_documents_pays_nothing(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats;

    mergers_stats_get(w->members[0].mergers, &stats);
    assert_int_equal(stats.replicas, 0);
    stop(w, 0);
    assert_false(merge_db_exists(w->members[0].directory));
}

static void a_write_is_everywhere_and_survives_a_restart_of_all(void **state)
{
    struct world *w = *state;

    assert_int_equal(put(w, 0, "a", "1"), REPLY_OK);
    eventually(w, 1, "a", 1);
    eventually(w, 2, "a", 1);
    assert_int_equal(put(w, 3, "a", "1"), REPLY_NOT_OWNER);
    for (uint32_t i = 0; i < 3; i++)
        stop(w, i);
    for (uint32_t i = 0; i < 3; i++)
        start(w, i);
    eventually(w, 2, "a", 1);
    assert_int_equal(count(w, 0, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_ANY),
                     1);
}

static void both_sides_of_a_cut_write_and_all_come_to_be_equal(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats;

    assert_int_equal(put(w, 0, "other", "0"), REPLY_OK);
    eventually(w, 2, "other", 1);
    w->cut = 3;
    assert_int_equal(put(w, 0, "a", "1"), REPLY_OK);
    assert_int_equal(put(w, 2, "a", "2"), REPLY_OK);
    stop(w, 2); /* What it alone has is on its disk. */
    start(w, 2);
    assert_int_equal(count(w, 2, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_ANY),
                     1);
    w->cut = 0;
    for (uint32_t i = 0; i < 3; i++)
        eventually(w, i, "a", 2);
    mergers_stats_get(w->members[0].mergers, &stats);
    assert_true(stats.repair_bytes > 0);
}

static void a_database_that_is_damaged_is_filled_from_the_others(void **state)
{
    struct world *w = *state;
    char path[TEST_DIRECTORY_BYTES + 64];

    assert_int_equal(put(w, 0, "a", "1"), REPLY_OK);
    eventually(w, 1, "a", 1);
    stop(w, 1);
    snprintf(path, sizeof path, "%s/CURRENT", w->members[1].directory);
    FILE *file = fopen(path, "w");
    fputs("MANIFEST-999999\n", file);
    fclose(file);
    start(w, 1);
    eventually(w, 1, "a", 1);
    assert_int_equal(
        count(w, 1, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_MAJORITY), 1);
}

static void lacking(struct world *w, uint32_t place, uint32_t wanted)
{
    uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS;

    while (mergers_lacking(w->members[place].mergers, SHARD) != wanted) {
        if (loop_now_ms(w->loop) > end_ms)
            fail_msg("%u lack documents, not %u", mergers_lacking(w->members[place].mergers, SHARD),
                     wanted);
        w->answered.is_there = false;
        (void)loop_run_until(w->loop, has_answer, w, 50);
    }
}

/* The fourth member is to take the place of the third one. */
static void a_removed_member_gives_what_it_alone_has_and_then_holds_nothing(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats;

    assert_int_equal(put(w, 0, "b", "1"), REPLY_OK);
    eventually(w, 2, "b", 1);
    w->cut = 3;
    assert_int_equal(put(w, 2, "a", "1"), REPLY_OK);
    w->record.membership.new_count = 3;
    memcpy(w->record.membership.new_members, (uint64_t[]){ 1, 2, 4 }, 3 * sizeof(uint64_t));
    tell_all(w);
    w->record.membership = (struct membership){ .config = w->record.membership.config,
                                                .count = 3,
                                                .members = { 1, 2, 4 } };
    tell_all(w);
    stop(w, 2);
    start(w, 2);
    w->cut = 0;
    eventually(w, 3, "a", 1);
    eventually(w, 0, "a", 1);
    uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS;
    do {
        mergers_stats_get(w->members[2].mergers, &stats);
        uint32_t replicas = stats.replicas;
        mergers_stats_get(w->members[0].mergers, &stats);
        if (replicas == 0 && stats.departing == 0)
            break;
        if (loop_now_ms(w->loop) > end_ms)
            fail_msg("the removed member keeps its replica");
        w->answered.is_there = false;
        (void)loop_run_until(w->loop, has_answer, w, 50);
    } while (true);
    /* It is a member again within one process: what its former replica said holds no more. */
    uint64_t former_boot = w->heard_boots[2];

    w->record.membership.new_count = 3;
    memcpy(w->record.membership.new_members, (uint64_t[]){ 1, 2, 3 }, 3 * sizeof(uint64_t));
    tell_all(w);
    lacking(w, 0, 0);
    w->record.membership = (struct membership){ .config = w->record.membership.config,
                                                .count = 3,
                                                .members = { 1, 2, 3 } };
    tell_all(w);
    eventually(w, 2, "a", 1);
    assert_int_equal(put(w, 2, "c", "1"), REPLY_OK);
    eventually(w, 0, "c", 1);
    assert_true(w->heard_boots[2] > former_boot);
}

static bool log_has_room(void *user)
{
    (void)user;
    return true;
}

static void database_rests(void *user, bool rests)
{
    (void)user;
    (void)rests;
}

static bool is_full(void *user)
{
    return space_state(user) == SPACE_FULL;
}

/* The router brings a write that is UNAVAILABLE to another member. */
static void a_full_disk_ends_writes_and_no_reads(void **state)
{
    struct world *w = *state;
    struct member *full = &w->members[0];

    assert_int_equal(put(w, 0, "a", "1"), REPLY_OK);
    stop(w, 0);
    full->space = space_new(&(struct space_options){ .loop = w->loop,
                                                     .log = &quiet,
                                                     .log_path = w->directory,
                                                     .db_path = w->directory,
                                                     .free_min = UINT64_MAX / 8,
                                                     .log_has_room = log_has_room,
                                                     .database_rests = database_rests });
    assert_true(loop_run_until(w->loop, is_full, full->space, PATIENCE_MS));
    start(w, 0);
    assert_int_equal(count_any(w, 0, "a"), 1);
    assert_int_equal(listed(w, 0), 1);
    assert_int_equal(put(w, 0, "b", "1"), REPLY_REFUSED);
    refused_as(w, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE);
    assert_int_equal(
        count(w, 0, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_MAJORITY), 0);
    refused_as(w, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE);
    assert_int_equal(put(w, 1, "b", "1"), REPLY_OK);
    stop(w, 0);
    space_free(full->space);
    full->space = NULL;
}

static void an_erased_entity_is_shown_by_no_read_and_an_undo_brings_it_back(void **state)
{
    struct world *w = *state;

    assert_int_equal(put(w, 0, "a", "1"), REPLY_OK);
    eventually(w, 1, "a", 1);
    erased(w, 0, 5, true, false);
    assert_int_equal(count_any(w, 0, "a"), 0);
    assert_int_equal(
        count(w, 0, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_MAJORITY), 0);
    assert_int_equal(listed(w, 0), 0);
    assert_int_equal(put(w, 0, "a", "2"), REPLY_REFUSED);
    assert_int_equal(count_any(w, 1, "a"), 1); /* It has not heard of it. */
    erased(w, 0, 5, false, false);
    assert_int_equal(count_any(w, 0, "a"), 1);
    assert_int_equal(listed(w, 0), 1);
    assert_int_equal(put(w, 0, "b", "1"), REPLY_OK);
}

static void what_is_purged_comes_back_from_no_sleeper_and_no_disk(void **state)
{
    struct world *w = *state;

    assert_int_equal(put(w, 0, "a", "1"), REPLY_OK);
    eventually(w, 2, "a", 1);
    w->cut = 3;
    assert_int_equal(put(w, 2, "slept", "1"), REPLY_OK);
    for (uint32_t i = 0; i < 2; i++) {
        erased(w, i, 5, true, true);
        erased(w, i, 5, false, true);
    }
    assert_int_equal(count_any(w, 0, "a"), 0);
    assert_int_equal(put(w, 0, "new", "1"), REPLY_OK); /* Its life after the purge. */
    w->cut = 0;
    eventually(w, 2, "new", 1); /* Which says what is purged, before the sleeper's own log does. */
    assert_int_equal(count_any(w, 2, "a"), 0);
    assert_int_equal(count_any(w, 2, "slept"), 0);
    for (uint32_t i = 0; i < 3; i++) {
        stop(w, i);
        erasures_free(w->members[i].erasures);
        w->members[i].erasures = erasures_new(4);
    }
    for (uint32_t i = 0; i < 3; i++)
        start(w, i);
    for (uint32_t i = 0; i < 3; i++) {
        eventually(w, i, "new", 1);
        assert_int_equal(listed(w, i), 1);
    }
}

/* Whose documents no call asks for. */
static void a_member_that_is_asked_for_nothing_purges_too(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats;
    uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS;

    assert_int_equal(put(w, 0, "a", "1"), REPLY_OK);
    erased(w, 0, 5, false, true);
    do {
        if (loop_now_ms(w->loop) > end_ms)
            fail_msg("the record is kept");
        w->answered.is_there = false;
        (void)loop_run_until(w->loop, has_answer, w, 50);
        mergers_stats_get(w->members[0].mergers, &stats);
    } while (stats.record_bytes > 0 || stats.records[MERGE_POLICY_VECTOR] > 0);
}

/* Under steady writes the members are hardly ever equal. */
static void members_that_follow_each_other_are_not_apart_for_long(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats = { 0 };
    uint64_t begin_ms = loop_now_ms(w->loop);
    char json[24];

    for (uint32_t i = 0; loop_now_ms(w->loop) < begin_ms + WRITES_MS; i++) {
        snprintf(json, sizeof json, "%u", i);
        (void)put(w, i % 3, i % 2 == 0 ? "a" : "b", json);
        w->answered.is_there = false;
        (void)loop_run_until(w->loop, has_answer, w, 5);
    }
    mergers_stats_get(w->members[0].mergers, &stats);
    assert_in_range(stats.apart_ms, 0, WRITES_MS - 2000);
}

static void begin_joint(struct world *w)
{
    w->record.membership.new_count = 3;
    memcpy(w->record.membership.new_members, (uint64_t[]){ 1, 2, 4 }, 3 * sizeof(uint64_t));
    tell_all(w);
}

static void old_members_are_not_left_before_a_new_one_has_their_documents(void **state)
{
    struct world *w = *state;

    assert_int_equal(mergers_lacking(w->members[0].mergers, SHARD), 0);
    assert_int_equal(put(w, 0, "a", "1"), REPLY_OK);
    eventually(w, 2, "a", 1);
    assert_int_equal(mergers_lacking(w->members[0].mergers, SHARD), 0);
    w->cut = 4;
    begin_joint(w);
    assert_int_equal(mergers_lacking(w->members[0].mergers, SHARD), 3);
    lacking(w, 0, 1); /* Those that stay ask each other, too. */
    w->cut = 0;
    lacking(w, 0, 0);
    stop(w, 0); /* And the third one leaves: of three that had it, two are away. */
    w->record.membership = (struct membership){ .config = w->record.membership.config,
                                                .count = 3,
                                                .members = { 1, 2, 4 } };
    stop(w, 1);
    stop(w, 2);
    tell_all(w);
    assert_int_equal(count(w, 3, "a", HOLDFAST__V1__DOCUMENT_CONSISTENCY__DOCUMENT_CONSISTENCY_ANY),
                     1);
}

static void a_shard_without_documents_is_not_waited_for(void **state)
{
    struct world *w = *state;

    begin_joint(w);
    assert_int_equal(mergers_lacking(w->members[0].mergers, SHARD), 0);
}

static void a_member_whose_program_knows_no_documents_is_not_waited_for(void **state)
{
    struct world *w = *state;

    assert_int_equal(put(w, 0, "a", "1"), REPLY_OK);
    eventually(w, 1, "a", 1);
    w->cut = w->old = 4;
    begin_joint(w);
    lacking(w, 0, 0);
}

static void a_member_that_is_away_is_not_waited_for_for_ever(void **state)
{
    struct world *w = *state;

    stop(w, 0);
    w->leave_wait_ms = 1500;
    start(w, 0);
    assert_int_equal(put(w, 0, "a", "1"), REPLY_OK);
    w->cut = 4;
    begin_joint(w);
    assert_int_equal(mergers_lacking(w->members[0].mergers, SHARD), 3);
    lacking(w, 0, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_players_of_a_server_that_ended_are_gone_at_once_and_swept_by_the_owner, setup,
            teardown),
        TEST(each_element_of_a_batch_is_carried_out_by_itself),
        TEST(a_member_lists_its_shards_and_says_which_it_does_not_have),
        TEST(what_needs_no_documents_pays_nothing),
        TEST(a_write_is_everywhere_and_survives_a_restart_of_all),
        TEST(both_sides_of_a_cut_write_and_all_come_to_be_equal),
        TEST(a_database_that_is_damaged_is_filled_from_the_others),
        TEST(a_full_disk_ends_writes_and_no_reads),
        TEST(an_erased_entity_is_shown_by_no_read_and_an_undo_brings_it_back),
        TEST(what_is_purged_comes_back_from_no_sleeper_and_no_disk),
        TEST(a_member_that_is_asked_for_nothing_purges_too),
        TEST(members_that_follow_each_other_are_not_apart_for_long),
        TEST(a_removed_member_gives_what_it_alone_has_and_then_holds_nothing),
        TEST(old_members_are_not_left_before_a_new_one_has_their_documents),
        TEST(a_shard_without_documents_is_not_waited_for),
        TEST(a_member_whose_program_knows_no_documents_is_not_waited_for),
        TEST(a_member_that_is_away_is_not_waited_for_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
