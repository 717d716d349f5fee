/*
 * DefinitionService/GetSettings: from the router's own table, which follows etcd. A call that names
 * the version it has may wait for a later one.
 */
#include <inttypes.h>
#include <string.h>

#include "holdfast/v1/definition.pb-c.h"
#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/request/router_state.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

#define WAIT_MS_MAX    30000u
#define WAITS_MAX      4096u
#define WAITS_PART     4u /* Of the router's calls in flight, what may wait, */
#define WAITS_OF_ONE   2u /* and of that, what one caller may have. */
#define WAITS_LATER_MS 1000u
#define KNOWN_LATER_MS 250u

typedef Holdfast__V1__GetSettingsRequest settings_request;

/* In the request's arena. */
struct settings_wait {
    struct request *request;
    struct settings_wait *next, **link; /* `*link` is this one. */
    struct loop_timer timer;
};

/* ---- answers ---- */
static void fail_unknown(struct request *request, const char *name)
{
    struct slice meant = settings_table_suggest(request->router->options.settings, name);
    Holdfast__V1__ErrorDetail detail;
    char hint[NEAREST_HINT_BYTES];

    refusal_make(request->arena, &detail, CODE(NOT_FOUND), "there are no such settings%s",
                 meant.size > 0 ? nearest_hint(meant, hint) : "");
    detail.field = text_lend("name");
    detail.value = text_lend(name);
    request_fail(request, &detail);
}

static void fail_later(struct request *request)
{
    Holdfast__V1__ErrorDetail detail;

    refusal_make(request->arena, &detail, CODE(UNAVAILABLE),
                 "the router has not read the definitions yet");
    detail.retry_after_ms = KNOWN_LATER_MS;
    request_fail(request, &detail);
}

static void reply(struct request *request, const struct settings *settings, bool unchanged)
{
    Holdfast__V1__GetSettingsResponse response = HOLDFAST__V1__GET_SETTINGS_RESPONSE__INIT;

    response.name = text_lend(settings->name);
    response.number = settings->number;
    response.version = settings->version;
    response.updated_at_ms = settings->made_at_ms;
    response.unchanged = unchanged;
    if (!unchanged)
        response.json = settings->json;
    request_reply(request, &response.base);
}

static bool is_news(const settings_request *asked, const struct settings *settings)
{
    return asked->if_version_above == 0 || settings->version > asked->if_version_above ||
           (asked->if_number != 0 && settings->number != asked->if_number);
}

/* False: the request waits on; never if `last`. */
static bool answer(struct request *request, bool last)
{
    const settings_request *asked = (const void *)request->message;
    const struct settings_table *table = request->router->options.settings;
    const struct settings *settings;

    if (table == NULL || !table->complete) {
        fail_later(request);
        return true;
    }
    settings = settings_table_find(table, asked->name);
    bool news = settings != NULL && is_news(asked, settings);
    if (settings != NULL && !news && !last)
        return false;
    if (settings == NULL)
        fail_unknown(request, asked->name);
    else
        reply(request, settings, !news);
    return true;
}

/* ---- those that wait ---- */
static void wait_link(struct settings_wait *wait)
{
    struct settings_wait **head = &wait->request->router->settings_waits;

    wait->next = *head;
    wait->link = head;
    if (wait->next != NULL)
        wait->next->link = &wait->next;
    *head = wait;
}

static void wait_unlink(struct settings_wait *wait)
{
    *wait->link = wait->next;
    if (wait->next != NULL)
        wait->next->link = wait->link;
}

/* Before its request is answered, which is the end of its memory. */
static void wait_end(struct settings_wait *wait)
{
    loop_timer_stop(&wait->timer);
    wait_unlink(wait);
    wait->request->router->settings_wait_count--;
}

static void wait_over(void *user)
{
    struct settings_wait *wait = user;

    wait_end(wait);
    (void)answer(wait->request, true);
}

static void on_cancel(struct request *request)
{
    wait_end(request->state);
    request_fail_gone(request);
}

/* An answer may end other calls, of the same connection: all that were not looked at stay in a list
 * from which they can go. */
void definition_get_settings_look(struct router *router, const char *name)
{
    struct settings_wait *wait;

    router->settings_looked = router->settings_waits;
    router->settings_waits = NULL;
    if (router->settings_looked != NULL)
        router->settings_looked->link = &router->settings_looked;
    while ((wait = router->settings_looked) != NULL) {
        const settings_request *asked = (const void *)wait->request->message;
        struct request *request = wait->request;

        wait_unlink(wait);
        wait_link(wait);
        if (name != NULL && strcmp(name, asked->name) != 0)
            continue;
        const struct settings *settings =
            settings_table_find(router->options.settings, asked->name);
        if (settings != NULL && !is_news(asked, settings))
            continue;
        wait_end(wait);
        if (request_is_welcome(request))
            (void)answer(request, true);
        else
            request_fail_text(request, CODE(UNAUTHENTICATED), "the API key is not valid any more");
    }
}

void definition_get_settings_end_all(struct router *router)
{
    while (router->settings_waits != NULL)
        wait_over(router->settings_waits);
}

/* ---- the beginning ---- */
static err check(struct request *request, Holdfast__V1__ErrorDetail *ret_detail)
{
    const settings_request *asked = (const void *)request->message;
    size_t size = strlen(asked->name);

    if (size == 0 || size > SETTINGS_NAME_MAX ||
        strspn(asked->name, "abcdefghijklmnopqrstuvwxyz0123456789_") != size) {
        refusal_make_field(
            request->arena, ret_detail,
            &(struct refusal_field){ "name", "1 to 64 of [a-z0-9_]", slice_from_text(asked->name) },
            "no settings have such a name");
        return ERR_INVALID;
    }
    if (asked->wait_ms <= WAIT_MS_MAX)
        return ERR_OK;
    const char *value = arena_printf(request->arena, "%" PRIu32, asked->wait_ms);
    refusal_make_field(request->arena, ret_detail,
                       &(struct refusal_field){ "wait_ms", "0 to 30000", slice_from_text(value) },
                       "that is too long to wait");
    return ERR_INVALID;
}

static uint32_t waits_of(const struct router *router, uint64_t caller)
{
    uint32_t count = 0;

    for (const struct settings_wait *wait = router->settings_waits; wait != NULL; wait = wait->next)
        count += wait->request->caller == caller;
    return count;
}

static err check_room(struct request *request, Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct router *router = request->router;
    uint32_t most = router->options.in_flight_max / WAITS_PART;
    bool has_share = request->caller != 0;

    if (most > WAITS_MAX)
        most = WAITS_MAX;
    if (most < WAITS_OF_ONE)
        most = WAITS_OF_ONE;
    uint32_t share = most / WAITS_OF_ONE;
    if (router->settings_wait_count >= most)
        refusal_make(request->arena, ret_detail, CODE(THROTTLED),
                     "%" PRIu32 " calls wait for settings already", most);
    else if (has_share && router->settings_wait_count >= share &&
             waits_of(router, request->caller) >= share)
        refusal_make(request->arena, ret_detail, CODE(THROTTLED),
                     "this API key, or this address where no key is asked for, has %" PRIu32
                     " calls that wait for settings already",
                     share);
    else
        return ERR_OK;
    ret_detail->retry_after_ms = WAITS_LATER_MS;
    return ERR_UNAVAILABLE;
}

static void wait_begin(struct request *request, uint32_t wait_ms)
{
    struct router *router = request->router;
    struct settings_wait *wait = arena_zalloc(request->arena, sizeof *wait);

    wait->request = request;
    loop_timer_init(&wait->timer, router->options.loop, wait_over, wait);
    request->state = wait;
    request->cancel = on_cancel;
    request->waited = true;
    router->settings_wait_count++;
    wait_link(wait);
    loop_timer_start(&wait->timer, request_time_left(request, wait_ms));
}

void definition_get_settings_handle(struct request *request)
{
    const settings_request *asked = (const void *)request->message;
    Holdfast__V1__ErrorDetail detail;

    if (check(request, &detail) != ERR_OK)
        request_fail(request, &detail);
    else if (answer(request, asked->wait_ms == 0 || request->router->streams_ended))
        return;
    else if (check_room(request, &detail) != ERR_OK)
        request_fail(request, &detail);
    else
        wait_begin(request, asked->wait_ms);
}
