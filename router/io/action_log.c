#include "router/io/action_log.h"

#include <ctype.h>
#include <string.h>

#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

/* Where the first line of a minute may be written; *ret_withheld: the lines that were not since. */
static bool may_tell(struct action_log *actions, uint64_t cause, uint64_t now_ms,
                     uint32_t *ret_withheld)
{
    struct action_slot *slot = &actions->slots[cause % ACTION_LOG_SLOTS];

    if (slot->logged_ms != 0 && now_ms < slot->logged_ms + ACTION_LOG_EVERY_MS) {
        slot->withheld++;
        return false;
    }
    *ret_withheld = slot->withheld;
    *slot = (struct action_slot){ .logged_ms = now_ms + (now_ms == 0) };
    return true;
}

static uint64_t mix(uint64_t cause, const char *text)
{
    return cause * 0x9e3779b97f4a7c15u ^ hash_u64(slice_from_text(text));
}

/* "10.0.0.1:5123" without the port: a caller's connections are one cause. */
static uint64_t mix_address(uint64_t cause, const char *peer)
{
    const char *colon = strrchr(peer, ':');
    size_t size = colon != NULL ? (size_t)(colon - peer) : strlen(peer);

    return cause * 0x9e3779b97f4a7c15u ^ hash_u64((struct slice){ (const uint8_t *)peer, size });
}

void action_code_text(Holdfast__V1__ErrorCode code, char ret_text[ACTION_CODE_TEXT_SIZE])
{
    static const char prefix[] = "ERROR_CODE_";
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(&holdfast__v1__error_code__descriptor, (int)code);
    const char *name = value != NULL ? value->name : "other";
    size_t size;

    if (code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNSPECIFIED)
        name = "ok";
    else if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    size = strlen(name);
    CHECK(size < ACTION_CODE_TEXT_SIZE);
    for (size_t i = 0; i <= size; i++)
        ret_text[i] = (char)tolower((unsigned char)name[i]);
}

void action_log_refused(struct action_log *actions, const struct action_refusal *refusal,
                        uint64_t now_ms)
{
    uint64_t cause = mix(1, refusal->why);
    uint32_t withheld;

    cause = refusal->key[0] != 0 ? mix(cause, refusal->key) : mix_address(cause, refusal->peer);
    if (!may_tell(actions, cause, now_ms, &withheld))
        return;
    log_event(actions->log, LOG_WARN, "request.refused", LOG_S("why", refusal->why),
              LOG_S("key", refusal->key[0] != 0 ? refusal->key : "none"),
              LOG_S("peer", refusal->peer), LOG_S("method", refusal->method),
              LOG_N("others_since", withheld));
}

/* For what the caller is, or for what it sent; not by the rules of the game, nor for our trouble.
 */
static bool is_refusal(Holdfast__V1__ErrorCode code)
{
    return code == CODE(PERMISSION_DENIED) || code == CODE(UNAUTHENTICATED) ||
           code == CODE(INVALID_ARGUMENT) || code == CODE(TOO_LARGE) || code == CODE(THROTTLED) ||
           code == CODE(UNIMPLEMENTED) || code == CODE(SESSION_LOST);
}

void action_log_code(struct action_log *actions, const struct action_refusal *refusal,
                     Holdfast__V1__ErrorCode code, uint64_t now_ms)
{
    struct action_refusal copy = *refusal;
    char why[ACTION_CODE_TEXT_SIZE];

    if (!is_refusal(code))
        return;
    action_code_text(code, why);
    copy.why = why;
    action_log_refused(actions, &copy, now_ms);
}

/* What opens to no other scope, and changes something; or acts as the system's operator. */
static bool is_action(const struct request *request)
{
    const struct method_info *method = request->method;
    bool staff = (method->scopes & ~(uint32_t)METHOD_SCOPES_STAFF) == 0 && method->scopes != 0;

    return request->as_admin || (staff && (method->writes || method->route == METHOD_ROUTER));
}

/* A backup put back is thousands of calls. */
static bool comes_in_floods(const struct method_info *method)
{
    return method->writes;
}

static void tell_action(struct action_log *actions, const struct request *request,
                        const char *code_text, uint64_t now_ms)
{
    const char *key = request->key_id != NULL ? request->key_id : "";
    uint64_t cause = mix(mix(mix(2, request->method->name), key), code_text);
    uint32_t withheld = 0;

    if (comes_in_floods(request->method) && !may_tell(actions, cause, now_ms, &withheld))
        return;
    log_event(actions->log, LOG_INFO, "admin.action", LOG_S("method", request->method->name),
              LOG_S("key", key[0] != 0 ? key : "none"),
              LOG_S("peer", request->peer != NULL ? request->peer : ""), LOG_S("code", code_text),
              LOG_N("others_since", withheld));
}

void action_log_finished(struct action_log *actions, const struct request *request,
                         Holdfast__V1__ErrorCode code, const char *code_text, uint64_t now_ms)
{
    if (is_refusal(code))
        action_log_refused(actions,
                           &(struct action_refusal){
                               code_text,
                               request->method->name,
                               request->key_id != NULL ? request->key_id : "",
                               request->peer != NULL ? request->peer : "",
                           },
                           now_ms);
    if (is_action(request))
        tell_action(actions, request, code_text, now_ms);
}
