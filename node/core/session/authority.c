#include "node/core/session/authority.h"

#include <string.h>

#include "idl/method.h"
#include "node/core/handler/refusal.h"
#include "node/core/session/session_apply.h"
#include "runtime/base/check.h"

bool authority_scope_is_known(struct slice scope)
{
    static const char *const scopes[] = { "payments", "mail", "moderation", "match", "admin" };

    for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
        if (slice_equal(scope, slice_from_text(scopes[i])))
            return true;
    }
    return false;
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
    char *text = arena_alloc(arena, sizeof "session:" + INCARNATION_TEXT_SIZE);
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
                         const struct handler *handler, enum authority_kind kind)
{
    if ((handler->admits & 1u << kind) != 0)
        return ERR_OK;
    err e = refuse(arena, refusal, CODE(PERMISSION_DENIED), "authority",
                   "%s does not admit the authority \"%s\"", method_find(handler->method)->name,
                   kind_text(kind));
    refusal->limit = (handler->admits & ADMITS_UNHELD) != 0 ? "session or unheld" : "session";
    refusal->value = kind_text(kind);
    return e;
}

static err session_lost(struct apply_context *context)
{
    const struct session *session = &context->player->session;
    const struct authority *authority = &context->op->authority;
    const char *why = "it was taken by another, ended or expired";

    if (meta_is_expired(context->meta, authority->incarnation))
        why = "its server's registration has expired";
    else if (session->fence < authority->fence)
        why = "it was never granted";
    return refuse(context->arena, context->refusal, CODE(SESSION_LOST), "authority.session.token",
                  "the session is no longer current: %s", why);
}

err authority_apply(struct apply_context *context, const struct handler *handler)
{
    const struct authority *authority = &context->op->authority;
    struct session *session = &context->player->session;

    if (handler->admits == 0)
        return ERR_OK;
    err e = authority_check_kind(context->arena, context->refusal, handler, authority->kind);
    if (e != ERR_OK)
        return e;
    context->authority_text = authority_text(context->arena, authority);
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
