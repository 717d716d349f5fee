/*
 * What a request leaves out (router/core/request_defaults.h): the first of body, batch, header and
 * key that says an authority; the body or the header Idempotency-Key for the op_id. And the forms
 * that nodes know some requests in (node_form.h).
 */
#include <string.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/error_code.h"
#include "router/core/node_form.h"
#include "router/core/request_defaults.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define ELEMENTS 3u

struct asked {
    struct rsim *sim;
    struct request_defaults defaults;
    const char *shared;    /* Of the batch. */
    const char *authority; /* Of header or key; NULL: neither says one. */
    bool authority_bad;
    const char *op_id; /* Of the header; NULL: it says none. */
    bool op_id_bad;
};

static char *maybe(struct rsim *sim, const char *text)
{
    return rsim_chance(sim, 50) ? text_lend("") : text_lend(text);
}

static void authority_ask(struct asked *asked)
{
    static const char *const good[] = { "system:payments", "session:1-2-3", "unheld" };
    static const struct {
        uint32_t scope;
        const char *text;
    } keys[] = { { 0, NULL },
                 { SCOPE_PAYMENTS, "system:payments" },
                 { SCOPE_ADMIN, "system:admin" },
                 { SCOPE_MAIL, "system:mail" } };
    struct rsim *sim = asked->sim;
    size_t key = rsim_between(sim, 0, ARRAY_SIZE(keys) - 1);
    const char *header = "";

    asked->defaults.key_scope = keys[key].scope;
    asked->authority = keys[key].text;
    switch (rsim_between(sim, 0, 7)) {
    case 0:
        header = "root";
        asked->authority_bad = true;
        break;
    case 1: { /* About 128 bytes. */
        size_t size = rsim_about(sim, 128);
        char *text = arena_alloc(&sim->arena, size + 1);
        memset(text, 'x', size);
        memcpy(text, "session:", 8);
        text[size] = 0;
        header = text;
        asked->authority_bad = size > 128;
        break;
    }
    case 2:
    case 3:
    case 4:
        header = RSIM_PICK(sim, good);
        break;
    default:
        break;
    }
    asked->defaults.authority = slice_from_text(header);
    if (header[0] != 0)
        asked->authority = header;
}

static void op_id_ask(struct asked *asked)
{
    static const struct {
        const char *header, *op_id;
    } all[] = {
        { "0190c0de-0000-7000-8000-000000000001", "0190c0de-0000-7000-8000-000000000001" },
        { "\"0190c0de-0000-7000-8000-000000000001\"", "0190c0de-0000-7000-8000-000000000001" },
        { "0190c0de-0000-4000-8000-000000000001", "key:0190c0de-0000-4000-8000-000000000001" },
        { "receipt:GPA.1", "receipt:GPA.1" },
        { "receipt:", "key:receipt:" },
        { "claim:7", "claim:7" },
        { "key:7", "key:7" },
        { "season:3", "season:3" },
        { "match:x", "match:x" },
        { "admin:x", "admin:x" },
        { "admins:x", "key:admins:x" },
        { "order-7", "key:order-7" },
        { "\"order-7\"", "key:order-7" },
        { "\"", "key:\"" },
        { "!~", "key:!~" },
        { "\"\"", NULL },
        { "a b", NULL },
        { "a\x7f", NULL },
    };
    struct rsim *sim = asked->sim;
    const char *header;

    if (rsim_chance(sim, 45))
        return;
    size_t place = rsim_between(sim, 0, ARRAY_SIZE(all) - 1);
    header = all[place].header;
    asked->op_id = all[place].op_id;
    asked->op_id_bad = asked->op_id == NULL;
    if (rsim_chance(sim, 10)) { /* About 150 bytes. */
        size_t size = rsim_about(sim, 150);
        char *text = arena_alloc(&sim->arena, size + 1);
        memset(text, 'k', size);
        text[size] = 0;
        header = text;
        asked->op_id_bad = size > 150;
        asked->op_id = size > 150 ? NULL : arena_printf(&sim->arena, "key:%s", text);
    }
    asked->defaults.idempotency_key = slice_from_text(header);
}

/* What a field of the body has, and what it is to have. */
struct field {
    char **text;
    const char *was, *wanted;
};

static bool authority_fill(struct field *field, const char *shared, const char *other)
{
    const char *given = shared[0] != 0 ? shared : other;

    if (field->was[0] != 0 || given == NULL)
        return false;
    field->wanted = given;
    return true;
}

static struct field field_of(char **text)
{
    return (struct field){ text, *text, *text };
}

/* Runs it. `fields`: first the authorities, then the op_ids, as many of each. */
static void check(struct asked *asked, enum method_id id, ProtobufCMessage *message,
                  struct field *fields, uint32_t count)
{
    const struct method_info *method = method_find(id);
    struct rsim *sim = asked->sim;
    bool header = asked->defaults.idempotency_key.size > 0, other = false, filled = false;
    bool typed_batch = method->route == METHOD_SCATTER && method->id != METHOD_DELIVER_MAIL;

    for (uint32_t i = 0; i < count; i++) {
        struct field *op_id = &fields[count + i];
        filled |= authority_fill(&fields[i], asked->shared, asked->authority);
        if (!header || asked->op_id_bad)
            continue;
        if (op_id->was[0] != 0 && strcmp(op_id->was, asked->op_id) != 0)
            other = true;
        if (op_id->was[0] == 0) {
            op_id->wanted = asked->op_id;
            filled = true;
        }
    }
    err e = request_defaults_apply(&asked->defaults, method, message, &sim->arena, &sim->detail);
    bool bad = (header && (typed_batch || (asked->op_id_bad && count > 0) || other)) ||
               asked->authority_bad;
    PROMISE(sim, e == (bad ? ERR_INVALID : ERR_OK), "%s: headers are taken, or refused: %s",
            method->name, e != ERR_OK ? sim->detail.message : "");
    if (e != ERR_OK) {
        rsim_refused(sim, CODE(INVALID_ARGUMENT), NULL);
        PROMISE(sim,
                !asked->authority_bad || strcmp(sim->detail.field, "holdfast-authority") != 0 ||
                    strstr(sim->detail.message, "xxxx") == NULL,
                "a header that may be a token is repeated");
        sim->counts.authority_refused += asked->authority_bad;
        sim->counts.op_id_other += other;
        return;
    }
    PROMISE(sim, asked->defaults.used == filled, "%s: a field was filled in, or not", method->name);
    for (uint32_t i = 0; i < 2 * count; i++)
        PROMISE(sim, strcmp(*fields[i].text, fields[i].wanted) == 0,
                "%s: \"%s\" in the place of \"%s\"", method->name, *fields[i].text,
                fields[i].wanted);
    sim->counts.authority_filled += filled;
    sim->counts.op_id_filled += header && filled;
}

static void ask(struct rsim *sim, struct asked *asked)
{
    *asked = (struct asked){ .sim = sim, .shared = "" };
    authority_ask(asked);
    op_id_ask(asked);
}

static void single_run(struct rsim *sim)
{
    Holdfast__V1__GrantRequest request;
    struct asked asked;

    ask(sim, &asked);
    holdfast__v1__grant_request__init(&request);
    request.authority = maybe(sim, "unheld");
    request.op_id = maybe(sim, "order");
    if (asked.op_id != NULL && rsim_chance(sim, 30))
        request.op_id = text_lend(asked.op_id);
    struct field fields[] = { field_of(&request.authority), field_of(&request.op_id) };
    check(&asked, METHOD_GRANT, &request.base, fields, 1);
}

static void batch_run(struct rsim *sim)
{
    Holdfast__V1__GrantRequest parts[ELEMENTS], *list[ELEMENTS];
    Holdfast__V1__BatchGrantRequest batch;
    struct field fields[2 * ELEMENTS];
    struct asked asked;
    uint32_t count = (uint32_t)rsim_between(sim, 0, ELEMENTS);

    ask(sim, &asked);
    if (rsim_chance(sim, 70))
        asked.defaults.idempotency_key = (struct slice){ NULL, 0 };
    holdfast__v1__batch_grant_request__init(&batch);
    batch.requests = list;
    batch.n_requests = count;
    batch.authority = maybe(sim, "system:match");
    for (uint32_t i = 0; i < count; i++) {
        holdfast__v1__grant_request__init(&parts[i]);
        list[i] = &parts[i];
        parts[i].authority = maybe(sim, "unheld");
        parts[i].op_id = maybe(sim, "order");
        fields[i] = field_of(&parts[i].authority);
        fields[count + i] = field_of(&parts[i].op_id);
    }
    asked.shared = batch.authority;
    check(&asked, METHOD_BATCH_GRANT, &batch.base, fields, count);
}

static void mail_run(struct rsim *sim)
{
    Holdfast__Internal__V1__DeliverToPlayerRequest parts[ELEMENTS], *list[ELEMENTS];
    Holdfast__Internal__V1__DeliverToPlayersRequest all;
    struct field fields[2 * ELEMENTS];
    struct asked asked;
    uint32_t count = (uint32_t)rsim_between(sim, 1, ELEMENTS);
    char *op_id = maybe(sim, "order"), *authority = maybe(sim, "system:mail");

    ask(sim, &asked);
    if (asked.op_id != NULL && rsim_chance(sim, 30))
        op_id = text_lend(asked.op_id);
    holdfast__internal__v1__deliver_to_players_request__init(&all);
    all.requests = list;
    all.n_requests = count;
    for (uint32_t i = 0; i < count; i++) {
        holdfast__internal__v1__deliver_to_player_request__init(&parts[i]);
        list[i] = &parts[i];
        parts[i].authority = authority;
        parts[i].op_id = op_id;
        fields[i] = field_of(&parts[i].authority);
        fields[count + i] = field_of(&parts[i].op_id);
    }
    check(&asked, METHOD_DELIVER_MAIL, &all.base, fields, count);
}

/* Reads take no header, and no header fills in an op_id that is asked about. */
static void left_alone_run(struct rsim *sim)
{
    Holdfast__V1__GetProfileRequest read;
    Holdfast__V1__ResolveOperationRequest resolve;
    struct asked asked;

    ask(sim, &asked);
    holdfast__v1__get_profile_request__init(&read);
    PROMISE(sim,
            request_defaults_apply(&asked.defaults, method_find(METHOD_GET_PROFILE), &read.base,
                                   &sim->arena, &sim->detail) == ERR_OK &&
                !asked.defaults.used,
            "a read takes a header");
    ask(sim, &asked);
    if (asked.authority_bad)
        return;
    holdfast__v1__resolve_operation_request__init(&resolve);
    PROMISE(sim,
            request_defaults_apply(&asked.defaults, method_find(METHOD_RESOLVE_OPERATION),
                                   &resolve.base, &sim->arena, &sim->detail) == ERR_OK,
            "an operation that is asked about takes a header");
    PROMISE(sim, resolve.op_id == NULL || resolve.op_id[0] == 0,
            "another operation is asked about");
}

void room_defaults(struct rsim *sim)
{
    for (uint32_t i = 0; i < 12; i++) {
        single_run(sim);
        batch_run(sim);
        mail_run(sim);
        left_alone_run(sim);
    }
}
