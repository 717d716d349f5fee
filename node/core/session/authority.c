#include "node/core/session/authority.h"

#include <string.h>

#include "idl/method.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/session/session_apply.h"
#include "runtime/base/check.h"
#include "runtime/cluster/authority_text.h"

bool authority_scope_is_known(struct slice scope)
{
    static const char *const scopes[] = { "payments", "mail", "moderation", "match", "admin" };

    for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
        if (slice_equal(scope, slice_from_text(scopes[i])))
            return true;
    }
    return false;
}

static err parse_token(struct slice token, struct authority *ret_authority)
{
    struct authority authority = { .kind = AUTHORITY_SESSION };

    if (token.size > AUTHORITY_TOKEN_BYTES_MAX ||
        token_parse(token, &authority.incarnation, &authority.fence) != ERR_OK)
        return ERR_INVALID;
    *ret_authority = authority;
    return ERR_OK;
}

static err parse_scope(struct slice scope, struct authority *ret_authority)
{
    if (!authority_scope_is_known(scope))
        return ERR_INVALID;
    *ret_authority = (struct authority){ .kind = AUTHORITY_SYSTEM, .scope = scope };
    return ERR_OK;
}

err authority_parse(struct arena *arena, struct slice text, struct authority *ret_authority,
                    struct authority_fault *ret_fault)
{
    struct authority_fault fault = { AUTHORITY_TEXT_LIMIT, "" };
    struct slice rest;
    err e = ERR_INVALID;

    switch (authority_text_read(text, &rest)) {
    case AUTHORITY_TEXT_UNHELD:
        *ret_authority = (struct authority){ .kind = AUTHORITY_UNHELD };
        return ERR_OK;
    case AUTHORITY_TEXT_SESSION:
        e = parse_token(rest, ret_authority);
        fault.limit = "session: and a token that StartSession returned, at most 64 bytes";
        fault.value = arena_printf(arena, "session: and %zu bytes", rest.size);
        break;
    case AUTHORITY_TEXT_SYSTEM:
        e = parse_scope(rest, ret_authority);
        fault = (struct authority_fault){ AUTHORITY_SCOPE_LIMIT, text_shorten(arena, text) };
        break;
    case AUTHORITY_TEXT_NONE: /* It may be a token without its kind. */
        if (text.size > 0)
            fault.value = arena_printf(arena, "%zu other bytes", text.size);
        break;
    }
    if (e != ERR_OK)
        *ret_fault = fault;
    return e;
}

/* The one field (tag 0x0a) of a message that is itself one field: two tags and two lengths, each of
 * one byte, since neither a token nor a scope is longer than 64 bytes. */
static bool inner_text(struct slice text, struct slice *ret_inner)
{
    if (text.size < 5 || text.data[1] != text.size - 2 || text.data[2] != 0x0a ||
        text.data[3] != text.size - 4)
        return false;
    *ret_inner = (struct slice){ text.data + 4, text.size - 4 };
    return true;
}

err authority_parse_logged(struct slice text, struct authority *ret_authority)
{
    struct arena arena = { 0 };
    struct authority_fault fault;
    struct slice inner;
    err e = ERR_INVALID;

    if (text.size > 0 && text.data[0] == 0x1a) { /* Its length, 0, ended the text. */
        *ret_authority = (struct authority){ .kind = AUTHORITY_UNHELD };
        e = text.size == 1 ? ERR_OK : ERR_INVALID;
    } else if (text.size > 0 && (text.data[0] == 0x0a || text.data[0] == 0x12)) {
        if (inner_text(text, &inner))
            e = text.data[0] == 0x0a ? parse_token(inner, ret_authority)
                                     : parse_scope(inner, ret_authority);
    } else {
        e = authority_parse(&arena, text, ret_authority, &fault);
    }
    arena_deinit(&arena);
    return e == ERR_OK ? ERR_OK : ERR_CORRUPT;
}

static size_t put_text(char *at, const char *text)
{
    size_t size = strlen(text);
    memcpy(at, text, size);
    return size;
}

static size_t put_decimal(char *at, uint64_t number)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (size_t i = 0; i < count; i++)
        at[i] = digits[count - 1 - i];
    return count;
}

struct slice authority_text(struct arena *arena, const struct authority *authority)
{
    struct slice caller = authority->caller;
    char *text = arena_alloc(arena, sizeof "session:" + INCARNATION_TEXT_SIZE + caller.size);
    size_t size = 0;

    switch (authority->kind) {
    case AUTHORITY_NONE:
        break;
    case AUTHORITY_UNHELD:
        size = put_text(text, "unheld");
        break;
    case AUTHORITY_SYSTEM:
        size = put_text(text, "system:");
        memcpy(text + size, authority->scope.data, authority->scope.size);
        size += authority->scope.size;
        if (caller.size == 0)
            break;
        text[size++] = '/';
        memcpy(text + size, caller.data, caller.size);
        size += caller.size;
        break;
    case AUTHORITY_SESSION:
        size = put_text(text, "session:");
        size += put_decimal(text + size, authority->incarnation.generation);
        text[size++] = '-';
        size += put_decimal(text + size, authority->incarnation.revision);
        break;
    }
    return (struct slice){ (const uint8_t *)text, size };
}

static const char *kind_text(enum authority_kind kind)
{
    switch (kind) {
    case AUTHORITY_SESSION:
        return "session";
    case AUTHORITY_SYSTEM:
        return "system";
    case AUTHORITY_UNHELD:
        return "unheld";
    case AUTHORITY_NONE:
        break;
    }
    return "";
}

err authority_check_kind(struct arena *arena, struct refusal *refusal,
                         const struct handler *handler, enum authority_kind kind, uint32_t version)
{
    bool early = kind == AUTHORITY_SYSTEM && version < handler->system_since;

    if ((handler->admits & 1u << kind) != 0 && !early)
        return ERR_OK;
    err e = refuse(arena, refusal, CODE(PERMISSION_DENIED), "authority",
                   "%s does not admit the authority \"%s\"",
                   method_told_name(method_find(handler->method)), kind_text(kind));
    refusal->limit = (handler->admits & ADMITS_UNHELD) != 0    ? "session or unheld"
                     : (handler->admits & ADMITS_SESSION) != 0 ? "session"
                                                               : "system";
    refusal->value = kind_text(kind);
    return e;
}

/* From then on SESSION_LOST tells who holds the player now. */
#define SUCCESSOR_APPLY_VERSION 10u

static err session_lost(struct apply_context *context)
{
    const struct session *session = &context->player->session;
    const struct authority *authority = &context->op->authority;
    const char *why = "it was taken by another, ended or expired";

    if (meta_is_expired(context->meta, authority->incarnation))
        why = "its server's registration has expired";
    else if (session->fence < authority->fence)
        why = "it was never granted";
    err e = refuse(context->arena, context->refusal, CODE(SESSION_LOST),
                   context->version >= 3 ? "authority" : "authority.session.token",
                   "the session is no longer current: %s", why);
    /* One who made up a token learns nothing by it. */
    bool granted = session->fence >= authority->fence;
    if (context->version >= SUCCESSOR_APPLY_VERSION && granted &&
        session_is_live(session, context->meta))
        context->refusal->holder = incarnation_text(context->arena, session->incarnation);
    return e;
}

/* Replicas of an earlier version tell no caller: they may stand beside this one. */
static struct slice told_authority(const struct apply_context *context)
{
    struct authority authority = context->op->authority;

    if (context->version < CALLER_APPLY_VERSION)
        authority.caller = (struct slice){ 0 };
    return authority_text(context->arena, &authority);
}

err authority_apply(struct apply_context *context, const struct handler *handler)
{
    const struct authority *authority = &context->op->authority;
    struct session *session = &context->player->session;

    if (handler->admits == 0)
        return ERR_OK;
    err e = authority_check_kind(context->arena, context->refusal, handler, authority->kind,
                                 context->version);
    if (e != ERR_OK)
        return e;
    context->authority_text = told_authority(context);
    if (authority->kind == AUTHORITY_UNHELD && session_is_live(session, context->meta))
        return refuse_locked(context, session->incarnation);
    if (authority->kind != AUTHORITY_SESSION)
        return ERR_OK;
    if (!session_is_current(session, context->meta, authority->incarnation, authority->fence))
        return session_lost(context);
    if (session->state == SESSION_GRANTED)
        session_hold(context);
    return ERR_OK;
}
