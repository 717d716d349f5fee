#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "idl/error_code.h"
#include "router/core/admission.h"
#include "router/core/renew.h"
#include "router/core/route.h"
#include "router/core/scatter.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

static struct arena arena;

static int reset(void **state)
{
    (void)state;
    arena_reset(&arena);
    return 0;
}

static int release(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static Holdfast__V1__GrantRequest grant_of(char *player, char *op)
{
    Holdfast__V1__GrantRequest grant;

    holdfast__v1__grant_request__init(&grant);
    grant.player_id = player;
    grant.op_id = op;
    return grant;
}

static err find(uint32_t method, const ProtobufCMessage *message, struct route_entity *entity,
                Holdfast__V1__ErrorDetail *detail)
{
    return route_find_entity(method_find(method), message, &arena, entity, detail);
}

static void every_forwarded_method_has_an_entity_and_an_op_id_where_it_must(void **state)
{
    size_t count;
    const struct method_info *methods = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        const ProtobufCFieldDescriptor *field;

        bool writes =
            methods[i].route == METHOD_MUTATION || methods[i].route == METHOD_MEMBER_WRITE;

        if (!writes && methods[i].route != METHOD_READ && methods[i].route != METHOD_MEMBER_READ)
            continue;
        field = &methods[i].request->fields[0];
        assert_int_equal(field->id, 1);
        assert_true(strcmp(field->name, "player_id") == 0 || strcmp(field->name, "entity") == 0);
        if (writes)
            assert_string_equal(methods[i].request->fields[1].name, "op_id");
    }
}

static void a_player_is_routed_by_its_entity(void **state)
{
    char player[] = "42", op[] = "admin:1", entity_text[] = "player:42";
    Holdfast__V1__GrantRequest grant = grant_of(player, op);
    Holdfast__V1__GetOperationRequest get;
    struct route_entity a, b;
    Holdfast__V1__ErrorDetail detail;
    (void)state;

    holdfast__v1__get_operation_request__init(&get);
    get.entity = entity_text;
    get.op_id = op;
    assert_int_equal(find(METHOD_GRANT, &grant.base, &a, &detail), ERR_OK);
    assert_int_equal(find(METHOD_GET_OPERATION, &get.base, &b, &detail), ERR_OK);
    assert_string_equal(a.text, "player:42");
    assert_string_equal(b.text, "player:42");
    assert_int_equal(a.size, 9);
}

static void a_wrong_envelope_is_refused_with_its_field(void **state)
{
    char empty[] = "", player[] = "42", control[] = "4\n2", longest[102], op[] = "admin:1";
    Holdfast__V1__GrantRequest grant = grant_of(empty, op);
    struct route_entity entity;
    Holdfast__V1__ErrorDetail detail;
    (void)state;

    assert_int_equal(find(METHOD_GRANT, &grant.base, &entity, &detail), ERR_INVALID);
    assert_string_equal(detail.field, "player_id");

    grant = grant_of(control, op);
    assert_int_equal(find(METHOD_GRANT, &grant.base, &entity, &detail), ERR_INVALID);

    memset(longest, 'x', sizeof longest);
    longest[101] = 0;
    grant = grant_of(longest, op);
    assert_int_equal(find(METHOD_GRANT, &grant.base, &entity, &detail), ERR_INVALID);
    assert_int_equal(strlen(detail.value), 64);
    longest[100] = 0;
    assert_int_equal(find(METHOD_GRANT, &grant.base, &entity, &detail), ERR_OK);

    grant = grant_of(player, empty);
    assert_int_equal(find(METHOD_GRANT, &grant.base, &entity, &detail), ERR_INVALID);
    assert_string_equal(detail.field, "op_id");
    assert_int_equal(detail.code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT);
    assert_int_not_equal(detail.outcome, HOLDFAST__V1__OUTCOME__OUTCOME_REFUSED);
}

static void every_batch_method_has_the_shape_that_scatter_writes(void **state)
{
    size_t count, batches = 0;
    const struct method_info *methods = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        const struct method_info *element = method_find(methods[i].element);
        const ProtobufCFieldDescriptor *requests, *results;
        const ProtobufCMessageDescriptor *result;

        if (methods[i].route != METHOD_SCATTER)
            continue;
        batches++;
        assert_in_range(scatter_limit(&methods[i]), 1, SCATTER_ELEMENTS_MAX);
        /* DeliverMail gets it from node_form.h. */
        requests = methods[i].id == METHOD_DELIVER_MAIL
                       ? &holdfast__internal__v1__deliver_to_players_request__descriptor.fields[0]
                       : &methods[i].request->fields[0];
        assert_ptr_equal(requests->descriptor, element->request);
        assert_int_equal(requests->id, 1);
        results = &methods[i].response->fields[0];
        assert_int_equal(results->id, 1);
        result = results->descriptor;
        assert_ptr_equal(protobuf_c_message_descriptor_get_field(result, 1)->descriptor,
                         element->response);
        assert_ptr_equal(protobuf_c_message_descriptor_get_field(result, 2)->descriptor,
                         &holdfast__v1__error_detail__descriptor);
        const ProtobufCFieldDescriptor *failed = &methods[i].response->fields[1];
        assert_int_equal(failed->id, 2);
        assert_string_equal(failed->name, "failed");
        assert_int_equal(failed->type, PROTOBUF_C_TYPE_UINT32);
    }
    assert_int_equal(batches, 13);
}

/* Whether scatter.c copies fields of that type. */
static bool is_copied(const ProtobufCFieldDescriptor *shared)
{
    switch (shared->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_ENUM:
        return true;
    default:
        return shared->label == PROTOBUF_C_LABEL_REPEATED;
    }
}

/* Every shared field has its namesake in the element, under the same number. */
static void every_shared_field_of_a_batch_is_a_field_of_its_elements(void **state)
{
    size_t count;
    const struct method_info *methods = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        if (methods[i].route != METHOD_SCATTER)
            continue;
        const ProtobufCMessageDescriptor *element = method_find(methods[i].element)->request;
        for (unsigned n = 1; n < methods[i].request->n_fields; n++) {
            const ProtobufCFieldDescriptor *shared = &methods[i].request->fields[n];
            const ProtobufCFieldDescriptor *own =
                protobuf_c_message_descriptor_get_field_by_name(element, shared->name);
            print_message("%s %s\n", methods[i].name, shared->name);
            assert_non_null(own);
            assert_int_equal(own->id, shared->id);
            assert_int_equal(own->label, shared->label);
            assert_true(is_copied(shared));
            if (strcmp(shared->name, "authority") == 0)
                assert_int_equal(shared->type, PROTOBUF_C_TYPE_STRING);
            else
                assert_int_equal(own->type, shared->type);
        }
        /* One op_id for the whole batch is what a batch is for. */
        assert_int_equal(
            protobuf_c_message_descriptor_get_field_by_name(element, "op_id") != NULL,
            protobuf_c_message_descriptor_get_field_by_name(methods[i].request, "op_id") != NULL);
    }
}

struct shared_batch {
    Holdfast__V1__GrantRequest grants[3], *list[3];
    Holdfast__V1__BatchGrantRequest batch;
};

static void shared_batch_init(struct shared_batch *b)
{
    static char names[3][2] = { "a", "b", "c" };
    static char op[] = "match:m:1", reason[] = "win", authority[] = "system:match";

    holdfast__v1__batch_grant_request__init(&b->batch);
    for (int i = 0; i < 3; i++) {
        holdfast__v1__grant_request__init(&b->grants[i]);
        b->grants[i].player_id = names[i];
        b->list[i] = &b->grants[i];
    }
    b->batch.requests = b->list;
    b->batch.n_requests = 3;
    b->batch.op_id = op;
    b->batch.attempt = 2;
    b->batch.reason = reason;
    b->batch.authority = authority;
}

static err share_grants(struct shared_batch *b, Holdfast__V1__ErrorDetail *detail)
{
    return scatter_share(method_find(METHOD_BATCH_GRANT), &b->batch.base, &arena, detail);
}

static void elements_take_what_they_leave_empty_and_keep_their_own(void **state)
{
    char own_op[] = "match:m:9", own_reason[] = "mvp", own_authority[] = "unheld";
    struct shared_batch b;
    Holdfast__V1__ErrorDetail detail;
    (void)state;

    shared_batch_init(&b);
    b.grants[1].op_id = own_op;
    b.grants[1].attempt = 7;
    b.grants[1].reason = own_reason;
    b.grants[1].authority = own_authority;
    assert_int_equal(share_grants(&b, &detail), ERR_OK);
    for (int i = 0; i < 3; i += 2) {
        assert_string_equal(b.grants[i].op_id, "match:m:1");
        assert_int_equal(b.grants[i].attempt, 2);
        assert_string_equal(b.grants[i].reason, "win");
        assert_string_equal(b.grants[i].authority, "system:match");
    }
    assert_string_equal(b.grants[1].op_id, "match:m:9");
    assert_int_equal(b.grants[1].attempt, 7);
    assert_string_equal(b.grants[1].reason, "mvp");
    assert_ptr_equal(b.grants[1].authority, own_authority);
}

static void a_shared_authority_is_one_of_three(void **state)
{
    static const struct {
        const char *text, *value;
    } cases[] = {
        { "session:1-2-3", NULL },
        { "system:payments", NULL },
        { "unheld", NULL },
        { "unheld:", "7 other bytes" },
        { "payments", "8 other bytes" },
        { "Session:1-2-3", "13 other bytes" }, /* A token is not repeated. */
    };
    Holdfast__V1__ErrorDetail detail;
    struct shared_batch b;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool taken = cases[i].value == NULL;

        shared_batch_init(&b);
        b.batch.authority = text_lend(cases[i].text);
        assert_int_equal(share_grants(&b, &detail), taken ? ERR_OK : ERR_INVALID);
        assert_string_equal(b.grants[2].authority, taken ? cases[i].text : "");
        if (taken)
            continue;
        assert_string_equal(detail.field, "authority");
        assert_string_equal(detail.value, cases[i].value);
    }
}

/* A thousand elements, and each would go to its node with all of it. */
static void what_a_batch_shares_has_a_limit(void **state)
{
    static char reason[SCATTER_SHARED_BYTES_MAX + 1];
    Holdfast__V1__ErrorDetail detail;
    struct shared_batch b;
    (void)state;

    shared_batch_init(&b);
    memset(reason, 'r', sizeof reason - 1);
    b.batch.reason = reason;
    assert_int_equal(share_grants(&b, &detail), ERR_INVALID);
    assert_int_equal(detail.code, CODE(INVALID_ARGUMENT));
    assert_string_equal(detail.limit, "at most 8192 bytes");
    assert_string_equal(b.grants[0].reason, "");
    reason[SCATTER_SHARED_BYTES_MAX / 2] = 0;
    assert_int_equal(share_grants(&b, &detail), ERR_OK);
    assert_ptr_equal(b.grants[0].reason, reason);
}

static err check_distinct(struct shared_batch *b, Holdfast__V1__ErrorDetail *detail)
{
    const struct method_info *method = method_find(METHOD_BATCH_GRANT);
    struct scatter_elements elements;

    assert_int_equal(share_grants(b, detail), ERR_OK);
    assert_int_equal(scatter_split(method, &b->batch.base, &arena, &elements, detail), ERR_OK);
    return scatter_check_distinct(method, &elements, &arena, detail);
}

static void one_operation_may_not_stand_twice_in_a_batch(void **state)
{
    char other[] = "match:m:2", empty[] = "";
    Holdfast__V1__ErrorDetail detail;
    struct shared_batch b;
    (void)state;

    shared_batch_init(&b);
    assert_int_equal(check_distinct(&b, &detail), ERR_OK);

    shared_batch_init(&b);
    b.grants[2].player_id = b.grants[0].player_id;
    assert_int_equal(check_distinct(&b, &detail), ERR_INVALID);
    assert_string_equal(detail.field, "requests[2].op_id");
    assert_string_equal(detail.value, "match:m:1");

    shared_batch_init(&b); /* The same player, another operation. */
    b.grants[2].player_id = b.grants[0].player_id;
    b.grants[2].op_id = other;
    assert_int_equal(check_distinct(&b, &detail), ERR_OK);

    shared_batch_init(&b); /* Each is refused by itself. */
    b.grants[1].player_id = empty;
    b.grants[2].player_id = empty;
    assert_int_equal(check_distinct(&b, &detail), ERR_OK);
}

/* Of a large batch, and of its last request. */
static void a_repetition_is_found_among_a_thousand(void **state)
{
    static Holdfast__V1__GrantRequest grants[1000];
    static Holdfast__V1__GrantRequest *list[1000];
    static char names[1000][8];
    struct scatter_elements elements = { (ProtobufCMessage *const *)list, 1000 };
    const struct method_info *method = method_find(METHOD_BATCH_GRANT);
    char op[] = "match:m:1";
    Holdfast__V1__ErrorDetail detail;
    (void)state;

    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(names[i], sizeof names[i], "p%u", i);
        grants[i] = grant_of(names[i], op);
        list[i] = &grants[i];
    }
    assert_int_equal(scatter_check_distinct(method, &elements, &arena, &detail), ERR_OK);
    grants[999].player_id = names[3];
    assert_int_equal(scatter_check_distinct(method, &elements, &arena, &detail), ERR_INVALID);
    assert_string_equal(detail.field, "requests[999].op_id");
}

static void a_batch_over_its_limit_is_refused(void **state)
{
    Holdfast__V1__BatchGrantRequest batch;
    Holdfast__V1__GrantRequest *grants[1001];
    struct scatter_elements elements;
    Holdfast__V1__ErrorDetail detail;
    (void)state;

    memset(grants, 0, sizeof grants);
    holdfast__v1__batch_grant_request__init(&batch);
    batch.requests = grants;
    batch.n_requests = 1001;
    assert_int_equal(
        scatter_split(method_find(METHOD_BATCH_GRANT), &batch.base, &arena, &elements, &detail),
        ERR_INVALID);
    assert_string_equal(detail.field, "requests");
    assert_string_equal(detail.limit, "at most 1000");
    assert_string_equal(detail.value, "1001");
    batch.n_requests = 1000;
    assert_int_equal(
        scatter_split(method_find(METHOD_BATCH_GRANT), &batch.base, &arena, &elements, &detail),
        ERR_OK);
    assert_int_equal(elements.count, 1000);
}

static void outcomes_are_joined_by_place(void **state)
{
    Holdfast__V1__GrantResponse grant;
    Holdfast__V1__ErrorDetail detail;
    Holdfast__V1__BatchGrantResponse *joined;
    struct scatter_outcome outcomes[3];
    uint8_t packed_grant[64], packed_detail[512];
    char text[301];
    struct buf out = { 0 };
    (void)state;

    memset(text, 'm', 300);
    text[300] = 0;
    holdfast__v1__grant_response__init(&grant);
    grant.ledger_seq = 77;
    holdfast__v1__error_detail__init(&detail);
    detail.code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_CAPACITY_FULL;
    detail.message = text;
    outcomes[0] = (struct scatter_outcome){
        false, { packed_grant, holdfast__v1__grant_response__pack(&grant, packed_grant) }
    };
    outcomes[1] = (struct scatter_outcome){
        true, { packed_detail, holdfast__v1__error_detail__pack(&detail, packed_detail) }
    };
    outcomes[2] = (struct scatter_outcome){ false, { NULL, 0 } };
    scatter_join(outcomes, 3, &out);
    assert_int_equal(out.size, scatter_joined_size(outcomes, 3));

    joined = holdfast__v1__batch_grant_response__unpack(NULL, out.size, out.data);
    assert_non_null(joined);
    assert_int_equal(joined->n_results, 3);
    assert_int_equal(joined->failed, 1);
    assert_int_equal(joined->results[0]->response->ledger_seq, 77);
    assert_int_equal(joined->results[1]->error->code, detail.code);
    assert_string_equal(joined->results[1]->error->message, text);
    assert_int_equal(joined->results[2]->outcome_case,
                     HOLDFAST__V1__GRANT_RESULT__OUTCOME_RESPONSE);
    holdfast__v1__batch_grant_response__free_unpacked(joined, NULL);
    buf_deinit(&out);
}

#define SESSIONS 7

static struct session_guard *guard_of(void)
{
    static const struct token_secret_record record = { .current = { 3 } };
    static struct session_secrets secrets;
    static struct session_guard guard = { .secrets = &secrets };

    session_secrets_init(&secrets, "test", &record);
    return &guard;
}

/* As its owner got it; what is no token stays as it is. */
static char *whole_token(const char *player, const char *plain)
{
    char text[SESSION_TOKEN_TEXT_SIZE];
    struct session_token token;

    if (session_token_parse(slice_from_text(plain), &token) != ERR_OK)
        return arena_printf(&arena, "%s", plain);
    session_token_print(guard_of()->secrets, slice_from_text(player), &token, text);
    return arena_printf(&arena, "%s", text);
}

static void make_sessions(Holdfast__V1__RenewSessionsRequest *request,
                          Holdfast__V1__SessionRef *sessions, Holdfast__V1__SessionRef **list)
{
    static char *const players[SESSIONS] = { "a", "b", "c", "d", "", "f", "g" };
    static char *const tokens[SESSIONS] = { "1-9-1", "1-9-2",    "1-8-3", "1-9-4",
                                            "1-9-5", "nonsense", "1-9-7" };
    static char incarnation[] = "1-9";

    holdfast__v1__renew_sessions_request__init(request);
    request->incarnation = incarnation;
    for (size_t i = 0; i < SESSIONS; i++) {
        holdfast__v1__session_ref__init(&sessions[i]);
        sessions[i].player_id = players[i];
        sessions[i].token = whole_token(players[i], tokens[i]);
        list[i] = &sessions[i];
    }
    sessions[6].token = tokens[6]; /* Numbers that many may read. */
    request->sessions = list;
    request->n_sessions = SESSIONS;
}

static void tokens_are_grouped_by_shard_and_verdicts_joined_by_place(void **state)
{
    Holdfast__V1__RenewSessionsRequest request;
    Holdfast__V1__SessionRef sessions[SESSIONS], *list[SESSIONS];
    Holdfast__Internal__V1__RenewTokensResponse none, answer;
    Holdfast__Internal__V1__RenewRelease release = { 0 }, *releases[] = { &release };
    Holdfast__V1__RenewSessionsResponse *response;
    Holdfast__V1__ErrorDetail detail;
    struct renew_plan plan;
    uint32_t placed = 0;
    (void)state;

    make_sessions(&request, sessions, list);
    assert_int_equal(
        renew_split(&(struct renew_call){ &request, 4096, guard_of() }, &arena, &plan, &detail),
        ERR_OK);
    assert_int_equal(plan.group_count, 3); /* a, b, d; the others no shard could confirm. */
    holdfast__internal__v1__renew_tokens_response__init(&none);
    holdfast__internal__v1__renew_tokens_response__init(&answer);
    holdfast__internal__v1__renew_release__init(&release);
    for (uint32_t i = 0; i < plan.group_count; i++) {
        const struct renew_group *group = &plan.groups[i];
        struct route_entity entity;

        assert_int_equal(group->request.n_tokens, 1);
        assert_true(i == 0 || plan.groups[i - 1].shard < group->shard);
        entity = route_entity_of_player(slice_from_text(group->request.tokens[0]->player_id));
        assert_int_equal(group->shard, shard_of_entity(slice_from_text(entity.text), 4096));
        assert_int_equal(group->request.shard, group->shard);
        placed += group->request.tokens[0]->position;
        switch (group->request.tokens[0]->player_id[0]) {
        case 'a':
            renew_take(&plan, i, &none);
            break;
        case 'b':
            release.position = group->request.tokens[0]->position;
            release.remaining_ms = 1234;
            answer.release_requested = releases;
            answer.n_release_requested = 1;
            renew_take(&plan, i, &answer);
            break;
        default:
            assert_int_equal(group->request.tokens[0]->fence, 4);
            renew_take(&plan, i, NULL);
        }
    }
    assert_int_equal(placed, 0 + 1 + 3);
    response = renew_join(&plan, &arena);
    assert_int_equal(response->n_lost, 4);
    assert_string_equal(response->lost[0]->player_id, "c");
    assert_string_equal(response->lost[2]->player_id, "f");
    assert_int_equal(response->n_release_requested, 1);
    assert_string_equal(response->release_requested[0]->player_id, "b");
    assert_int_equal(response->release_requested[0]->remaining_ms, 1234);
    assert_int_equal(response->n_unknown, 1);
    assert_string_equal(response->unknown[0]->player_id, "d");
}

static void a_hostile_answer_to_a_renewal_stays_inside_the_list(void **state)
{
    Holdfast__V1__RenewSessionsRequest request;
    Holdfast__V1__SessionRef sessions[SESSIONS], *list[SESSIONS];
    Holdfast__Internal__V1__RenewTokensResponse answer;
    uint32_t lost[] = { 999999, UINT32_MAX };
    Holdfast__V1__ErrorDetail detail;
    struct renew_plan plan;
    (void)state;

    make_sessions(&request, sessions, list);
    assert_int_equal(
        renew_split(&(struct renew_call){ &request, 1, guard_of() }, &arena, &plan, &detail),
        ERR_OK);
    assert_int_equal(plan.group_count, 1);
    holdfast__internal__v1__renew_tokens_response__init(&answer);
    answer.lost = lost;
    answer.n_lost = ARRAY_SIZE(lost);
    renew_take(&plan, 0, &answer);
    assert_int_equal(renew_join(&plan, &arena)->n_lost, 4);
}

static void a_heartbeat_over_its_limits_is_refused(void **state)
{
    Holdfast__V1__RenewSessionsRequest request;
    Holdfast__V1__SessionRef sessions[SESSIONS], *list[SESSIONS];
    Holdfast__V1__ErrorDetail detail;
    struct renew_plan plan;
    char nonsense[] = "9";
    (void)state;

    make_sessions(&request, sessions, list);
    request.n_sessions = RENEW_SESSIONS_MAX + 1;
    assert_int_equal(
        renew_split(&(struct renew_call){ &request, 64, guard_of() }, &arena, &plan, &detail),
        ERR_INVALID);
    assert_string_equal(detail.field, "sessions");
    request.n_sessions = 0;
    request.incarnation = nonsense;
    assert_int_equal(
        renew_split(&(struct renew_call){ &request, 64, guard_of() }, &arena, &plan, &detail),
        ERR_INVALID);
    assert_string_equal(detail.field, "incarnation");
}

static void bulk_is_refused_before_purchases(void **state)
{
    struct admission admission;
    uint32_t retry_after_ms = 0;
    (void)state;

    admission_init(&admission, 100);
    assert_true(admission_enter(&admission, ADMISSION_ORDINARY, 60, &retry_after_ms));
    assert_false(admission_enter(&admission, ADMISSION_BULK, 1, &retry_after_ms));
    assert_in_range(retry_after_ms, 500, 1000);
    assert_true(admission_enter(&admission, ADMISSION_ORDINARY, 25, &retry_after_ms));
    assert_false(admission_enter(&admission, ADMISSION_ORDINARY, 1, &retry_after_ms));
    assert_true(admission_enter(&admission, ADMISSION_URGENT, 15, &retry_after_ms));
    assert_false(admission_enter(&admission, ADMISSION_URGENT, 1, &retry_after_ms));
    admission_leave(&admission, 100);
    assert_true(admission_enter(&admission, ADMISSION_BULK, 1000, &retry_after_ms));
    assert_false(admission_enter(&admission, ADMISSION_URGENT, 1, &retry_after_ms));
    assert_int_equal(admission.refused[ADMISSION_URGENT], 2);
}

/* While batches of 50 do not fit, they are refused unread; something that can be more urgent is
 * read. */
static void a_full_router_refuses_what_it_need_not_read(void **state)
{
    struct admission admission;
    uint32_t retry_after_ms = 0;
    (void)state;

    admission_init(&admission, 10000);
    assert_false(admission_is_full(&admission, ADMISSION_BULK, &retry_after_ms));
    assert_true(admission_enter(&admission, ADMISSION_BULK, 5980, &retry_after_ms));
    assert_false(admission_is_full(&admission, ADMISSION_BULK, &retry_after_ms));
    assert_false(admission_enter(&admission, ADMISSION_BULK, 50, &retry_after_ms));
    assert_int_equal(admission.refused[ADMISSION_BULK], 1);
    retry_after_ms = 0;
    assert_true(admission_is_full(&admission, ADMISSION_BULK, &retry_after_ms));
    assert_int_equal(admission.refused[ADMISSION_BULK], 2);
    assert_in_range(retry_after_ms, ADMISSION_RETRY_AFTER_MS_MIN, ADMISSION_RETRY_AFTER_MS_MAX);
    assert_false(admission_is_full(&admission, ADMISSION_URGENT, &retry_after_ms));
    admission_leave(&admission, 30);
    assert_false(admission_is_full(&admission, ADMISSION_BULK, &retry_after_ms));
    /* One that hardly ever fits does not keep the others out for long. */
    assert_false(admission_enter(&admission, ADMISSION_BULK, 4000, &retry_after_ms));
    assert_true(admission_is_full(&admission, ADMISSION_BULK, &retry_after_ms));
    admission_leave(&admission, 400);
    assert_false(admission_is_full(&admission, ADMISSION_BULK, &retry_after_ms));
    assert_int_equal(admission_priority_max(method_find(METHOD_BATCH_GRANT)), ADMISSION_BULK);
    assert_int_equal(admission_priority_max(method_find(METHOD_GRANT)), ADMISSION_URGENT);
    assert_int_equal(admission_priority_max(method_find(METHOD_GET_PROFILE)), ADMISSION_ORDINARY);
    /* What is full for bulk takes others; the last place makes it full for all. */
    assert_true(admission_enter(&admission, ADMISSION_URGENT, 4449, &retry_after_ms));
    assert_false(admission_takes_none(&admission));
    assert_true(admission_enter(&admission, ADMISSION_URGENT, 1, &retry_after_ms));
    assert_true(admission_takes_none(&admission));
    admission_leave(&admission, 10000);
}

static void a_payment_is_urgent_and_a_save_is_bulk(void **state)
{
    char player[] = "42", op[] = "receipt:1";
    Holdfast__V1__GrantRequest grant = grant_of(player, op);
    Holdfast__V1__UpdateProfileRequest update;
    char session[] = "session:1-9-7", system[] = "system:payments";
    (void)state;

    holdfast__v1__update_profile_request__init(&update);
    assert_int_equal(admission_priority_of(method_find(METHOD_GRANT), &grant.base),
                     ADMISSION_ORDINARY);
    grant.authority = session;
    assert_int_equal(admission_priority_of(method_find(METHOD_GRANT), &grant.base),
                     ADMISSION_ORDINARY);
    grant.authority = system;
    assert_int_equal(admission_priority_of(method_find(METHOD_GRANT), &grant.base),
                     ADMISSION_URGENT);
    assert_int_equal(admission_priority_of(method_find(METHOD_UPDATE_PROFILE), &update.base),
                     ADMISSION_BULK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_forwarded_method_has_an_entity_and_an_op_id_where_it_must,
                               reset),
        cmocka_unit_test_setup(a_player_is_routed_by_its_entity, reset),
        cmocka_unit_test_setup(a_wrong_envelope_is_refused_with_its_field, reset),
        cmocka_unit_test_setup(every_batch_method_has_the_shape_that_scatter_writes, reset),
        cmocka_unit_test_setup(every_shared_field_of_a_batch_is_a_field_of_its_elements, reset),
        cmocka_unit_test_setup(elements_take_what_they_leave_empty_and_keep_their_own, reset),
        cmocka_unit_test_setup(a_shared_authority_is_one_of_three, reset),
        cmocka_unit_test_setup(what_a_batch_shares_has_a_limit, reset),
        cmocka_unit_test_setup(one_operation_may_not_stand_twice_in_a_batch, reset),
        cmocka_unit_test_setup(a_repetition_is_found_among_a_thousand, reset),
        cmocka_unit_test_setup(a_batch_over_its_limit_is_refused, reset),
        cmocka_unit_test_setup(outcomes_are_joined_by_place, reset),
        cmocka_unit_test_setup(tokens_are_grouped_by_shard_and_verdicts_joined_by_place, reset),
        cmocka_unit_test_setup(a_hostile_answer_to_a_renewal_stays_inside_the_list, reset),
        cmocka_unit_test_setup(a_heartbeat_over_its_limits_is_refused, reset),
        cmocka_unit_test_setup(bulk_is_refused_before_purchases, reset),
        cmocka_unit_test_setup(a_full_router_refuses_what_it_need_not_read, reset),
        cmocka_unit_test_setup(a_payment_is_urgent_and_a_save_is_bulk, reset),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
