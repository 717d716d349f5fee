#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "node/core/top/pull.h"
#include "node/core/top/top.h"

typedef Holdfast__Internal__V1__ForgetPartialsRequest forget_request;
typedef Holdfast__Internal__V1__ForgetPartialsResponse forget_response;

static struct reader homes_of(const forget_request *request)
{
    return reader_from((struct slice){ request->homes.data, request->homes.len });
}

err pull_forget_check(struct check_context *context, const forget_request *request)
{
    struct reader reader = homes_of(request);
    struct pull_home home;
    uint32_t count = 0;

    err e = top_version_check(context);
    if (e != ERR_OK)
        return e;
    while (pull_home_next(&reader, &home)) {
        reader.bad |= home.home >= context->shard_count;
        count++;
    }
    if (reader.bad)
        return refuse_invalid(context->arena, context->refusal, "homes",
                              "homes as PullPartials takes them", "");
    if (count > FORGET_HOMES_MAX)
        return refuse_number(context->arena, context->refusal, "homes", "at most 8", count);
    return ERR_OK;
}

err pull_forget(struct apply_context *context, const forget_request *request,
                forget_response *response)
{
    struct reader reader = homes_of(request);
    struct pull_home home;
    uint32_t forgotten = 0;
    err result = ERR_OK;

    while (forgotten < FORGET_TARGETS_MAX && pull_home_next(&reader, &home)) {
        uint32_t of_home = 0;
        err e = partials_forget(context, home.home, home.after, FORGET_TARGETS_MAX - forgotten,
                                &of_home);
        if (e != ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
        forgotten += of_home;
    }
    response->forgotten = forgotten;
    response->more = forgotten == FORGET_TARGETS_MAX;
    return result;
}
