/* What a request's API key may make out of nothing: in the call, then in the day. */
#include "idl/error_code.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/mint/mint_book.h"

struct mint_step {
    struct request *request;
    handle_fn *handle;
    struct mint_wait wait;
};

static struct mint_call call_of(const struct request *request)
{
    return (struct mint_call){
        .method = request->method,
        .message = request->message,
        .key_id = request->key_id,
        .grants = request->key_grants != NULL ? request->key_grants : "",
        .per_day = request->key_per_day != NULL ? request->key_per_day : "",
        .wall_ms = loop_wall_ms(),
        .arena = request->arena,
    };
}

err mint_allow(struct request *request, Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct mint_call call = call_of(request);
    err e = mint_check(&call, ret_detail);

    request->router->mints_refused += e != ERR_OK;
    return e;
}

static void end(struct mint_step *step, err e, const Holdfast__V1__ErrorDetail *detail)
{
    struct request *request = step->request;

    request->state = NULL;
    request->cancel = NULL;
    if (e == ERR_OK) {
        step->handle(request);
        return;
    }
    request->router->mints_refused += e == ERR_FULL;
    request_fail(request, detail);
}

static void taken(void *user, err e, const Holdfast__V1__ErrorDetail *detail)
{
    end(user, e, detail);
}

static void step_cancel(struct request *request)
{
    struct mint_step *step = request->state;

    mint_book_cancel(&step->wait);
    request_fail_text(request, CODE(CANCELED), "the caller has gone; nothing was done");
}

void mint_then(struct request *request, handle_fn *handle)
{
    Holdfast__V1__ErrorDetail detail;

    if (request->key_per_day == NULL || request->key_per_day[0] == 0) {
        handle(request);
        return;
    }
    struct mint_step *step = arena_zalloc(request->arena, sizeof *step);
    *step = (struct mint_step){ .request = request, .handle = handle };
    step->wait.call = call_of(request);
    step->wait.done = taken;
    step->wait.user = step;
    step->wait.timeout_ms = request_time_left(request, ROUTER_RENEW_MS_MAX);
    request->state = step;
    request->cancel = step_cancel;
    err e = mint_book_take(request->router->mint, &step->wait, &detail);
    if (e != ERR_NEED)
        end(step, e, &detail);
}
