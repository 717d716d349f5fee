/* Metadata from the endpoint that a collection's definition names: one request a batch, unless the
 * endpoint rests (metadata_breaker.h). */
#include "router/core/metadata_wire.h"
#include "router/rpc/metadata/metadata_batch.h"

static uint64_t now_ms(const struct metadata_batch *batch)
{
    return loop_now_ms(batch->router->options.loop);
}

static struct metadata_question question_of(const struct metadata_batch *batch)
{
    return (struct metadata_question){
        .collection = slice_from_text(batch->source->collection),
        .targets = batch->targets,
        .count = batch->count,
    };
}

static void fail(struct metadata_batch *batch, const char *why)
{
    batch->reason = arena_printf(&batch->arena, "the endpoint of metadata: %s", why);
    metadata_breaker_failed(&batch->source->breaker, now_ms(batch));
    batch->owner->failed(batch, why);
}

/* Entries that break a rule are not known to be absent, either: they are asked for again. */
static void take(struct metadata_batch *batch, struct slice json)
{
    const struct metadata_question question = question_of(batch);
    struct metadata_answer answer;
    const char *why;

    if (metadata_answer_read(&question, json, &batch->arena, &answer, &why) != ERR_OK) {
        fail(batch, why);
        return;
    }
    metadata_breaker_succeeded(&batch->source->breaker);
    batch->owner->fetched(batch, answer.left_out);
    if (answer.left_out > 0)
        batch->reason = "the endpoint of metadata: some entries break a rule, and are left out";
    for (size_t i = 0; i < batch->count; i++) {
        if (answer.told[i] != NULL || answer.left_out == 0)
            batch->owner->learn(batch, i, answer.told[i]);
    }
}

static void fetched(struct metadata_fetch *fetch, struct slice answer, const char *why)
{
    struct metadata_batch *batch = fetch->user;

    batch->fetching = false;
    if (why != NULL)
        fail(batch, why);
    else
        take(batch, answer);
    batch->owner->end(batch);
}

bool metadata_endpoint_begin(struct metadata_batch *batch)
{
    const struct router_options *options = &batch->router->options;
    const struct metadata_port *port = &options->metadata_port;
    const struct metadata_question question = question_of(batch);
    const char *why = "the router asks no endpoints";
    struct buf body = { 0 };

    if (!metadata_breaker_asks(&batch->source->breaker, now_ms(batch))) {
        batch->reason = "the endpoint of metadata failed several times, and rests for a moment";
        return false;
    }
    metadata_question_print(&question, &body);
    batch->fetch = (struct metadata_fetch){
        .url = arena_printf(&batch->arena, "%s", batch->source->url),
        .body = arena_copy(&batch->arena, buf_slice(&body)),
        .timeout_ms = options->metadata_timeout_ms,
        .done = fetched,
        .user = batch,
    };
    buf_deinit(&body);
    if (port->start != NULL && port->start(port->context, &batch->fetch, &why) == ERR_OK) {
        batch->fetching = true;
        return true;
    }
    fail(batch, why);
    return false;
}

void metadata_endpoint_cancel(struct metadata_batch *batch)
{
    const struct metadata_port *port = &batch->router->options.metadata_port;

    if (batch->fetching)
        port->cancel(port->context, &batch->fetch);
    batch->fetching = false;
}
