#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/limit.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/admin/policy_fetch.h"
#include "runtime/base/check.h"
#include "runtime/loop/loop.h"

struct info {
    struct request *request;
    Holdfast__V1__GetServiceInfoResponse response;
};

static const struct limit_row {
    const char *name;
    int64_t value;
    const char *about;
} limit_rows[] = {
#define LIMIT_ROW(macro, name, about) { name, (int64_t)LIMIT_##macro, about },
    PUBLIC_LIMITS(LIMIT_ROW)
#undef LIMIT_ROW
};

static int by_limit_name(const void *a, const void *b)
{
    const Holdfast__V1__ServiceLimit *const *left = a, *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

static void add_limits(struct arena *arena, Holdfast__V1__GetServiceInfoResponse *response)
{
    response->limits = arena_alloc(arena, ARRAY_SIZE(limit_rows) * sizeof *response->limits);
    for (size_t i = 0; i < ARRAY_SIZE(limit_rows); i++) {
        Holdfast__V1__ServiceLimit *limit = arena_alloc(arena, sizeof *limit);

        holdfast__v1__service_limit__init(limit);
        limit->name = arena_copy_text(arena, limit_rows[i].name);
        limit->value = limit_rows[i].value;
        limit->about = arena_copy_text(arena, limit_rows[i].about);
        response->limits[response->n_limits++] = limit;
    }
    qsort(response->limits, response->n_limits, sizeof *response->limits, by_limit_name);
}

static int by_method_name(const void *a, const void *b)
{
    const Holdfast__V1__MethodLimit *const *left = a, *const *right = b;

    return strcmp((*left)->method, (*right)->method);
}

static void add_methods(struct arena *arena, Holdfast__V1__GetServiceInfoResponse *response)
{
    response->methods = arena_alloc(arena, METHOD_ID_MAX * sizeof *response->methods);
    for (uint32_t id = 1; id <= METHOD_ID_MAX; id++) {
        const struct method_info *method = method_find(id);

        if (method == NULL || method->internal || method->most == 0)
            continue;
        Holdfast__V1__MethodLimit *limit = arena_alloc(arena, sizeof *limit);

        holdfast__v1__method_limit__init(limit);
        limit->method = arena_copy_text(arena, method->name);
        limit->elements_max = method->most;
        response->methods[response->n_methods++] = limit;
    }
    qsort(response->methods, response->n_methods, sizeof *response->methods, by_method_name);
}

static void policy_known(void *user, Holdfast__V1__Policy *policy)
{
    struct info *info = user;

    info->response.policy = policy;
    request_reply(info->request, &info->response.base);
}

void admin_get_service_info_handle(struct request *request)
{
    const char *version = request->router->options.self.version;
    struct info *info = arena_zalloc(request->arena, sizeof *info);

    info->request = request;
    holdfast__v1__get_service_info_response__init(&info->response);
    if (version != NULL)
        info->response.version = arena_copy_text(request->arena, version);
    info->response.server_time_ms = (int64_t)loop_wall_ms();
    add_limits(request->arena, &info->response);
    add_methods(request->arena, &info->response);
    policy_fetch(request, policy_known, info);
}
