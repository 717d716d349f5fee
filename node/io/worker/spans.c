#include "node/io/worker/spans.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/check.h"

/* Entries (after, last] that went to the log together. Zero times: not yet. */
struct span_write {
    uint64_t first;
    uint64_t last;
    uint64_t handed_ns;
    uint64_t persisted_ns;
    uint64_t committed_ns;
    uint8_t trace[TRACE_ID_SIZE];
};

struct span_shard {
    struct span_write writes[SPAN_WRITES_MAX]; /* A ring, by rising index. */
    uint32_t newest;                           /* Place of the newest, if count > 0. */
    uint32_t count;
    uint64_t open_first; /* First entry proposed and not handed over; 0: none. */
    uint8_t open_trace[TRACE_ID_SIZE];
};

struct spans {
    uint32_t shard_count;
    struct span_shard **shards; /* NULL until the first proposal. */
    struct span_call calls[SPAN_CALLS];
};

struct spans *spans_new(uint32_t shard_count)
{
    struct spans *spans = mem_zalloc(sizeof *spans);

    spans->shard_count = shard_count;
    spans->shards = mem_zalloc(sizeof(struct span_shard *) * shard_count);
    return spans;
}

void spans_free(struct spans *spans)
{
    if (spans == NULL)
        return;
    for (uint32_t i = 0; i < spans->shard_count; i++)
        free(spans->shards[i]);
    free(spans->shards);
    free(spans);
}

static struct span_call *place_of(struct spans *spans, uint64_t call)
{
    return &spans->calls[call % SPAN_CALLS];
}

/* The i-th newest. */
static struct span_write *write_at(struct span_shard *shard, uint32_t i)
{
    return &shard->writes[(shard->newest + SPAN_WRITES_MAX - i) % SPAN_WRITES_MAX];
}

void spans_begin(struct spans *spans, const struct span_call *call)
{
    CHECK(call->shard < spans->shard_count);
    struct span_call *place = place_of(spans, call->call);

    *place = *call;
    place->index = 0;
}

void spans_proposed(struct spans *spans, uint64_t call, uint64_t index)
{
    struct span_call *place = place_of(spans, call);

    if (place->call != call)
        return;
    place->index = index;
    struct span_shard **shard = &spans->shards[place->shard];
    if (*shard == NULL)
        *shard = mem_zalloc(sizeof **shard);
    if ((*shard)->open_first != 0)
        return;
    (*shard)->open_first = index;
    memcpy((*shard)->open_trace, place->trace, TRACE_ID_SIZE);
}

void spans_handed(struct spans *spans, uint32_t number, uint64_t index, uint64_t now_ns)
{
    struct span_shard *shard = spans->shards[number];

    if (shard == NULL || shard->open_first == 0 || index < shard->open_first)
        return;
    struct span_write write = { .first = shard->open_first, .last = index, .handed_ns = now_ns };
    memcpy(write.trace, shard->open_trace, TRACE_ID_SIZE);
    shard->open_first = 0;
    if (shard->count == SPAN_WRITES_MAX &&
        write_at(shard, SPAN_WRITES_MAX - 1)->committed_ns == 0) {
        struct span_write *last = write_at(shard, 0);
        last->last = index;
        last->persisted_ns = 0;
        last->committed_ns = 0;
        return;
    }
    if (shard->count > 0)
        shard->newest = (shard->newest + 1) % SPAN_WRITES_MAX;
    if (shard->count < SPAN_WRITES_MAX)
        shard->count++;
    shard->writes[shard->newest] = write;
}

void spans_persisted(struct spans *spans, uint32_t number, uint64_t index, uint64_t now_ns)
{
    struct span_shard *shard = spans->shards[number];

    for (uint32_t i = 0; shard != NULL && i < shard->count; i++) {
        struct span_write *write = write_at(shard, i);
        if (write->persisted_ns != 0)
            return;
        if (write->last <= index)
            write->persisted_ns = now_ns;
    }
}

bool spans_awaits(const struct spans *spans, uint32_t number, uint64_t commit_index)
{
    const struct span_shard *shard = spans->shards[number];

    /* The oldest that is open is the one that a commit reaches first. */
    for (uint32_t i = 0; shard != NULL && i < shard->count; i++) {
        const struct span_write *write =
            &shard->writes[(shard->newest + SPAN_WRITES_MAX - i) % SPAN_WRITES_MAX];
        if (write->committed_ns != 0)
            return false;
        if (write->last <= commit_index)
            return true;
    }
    return false;
}

uint64_t spans_committed(struct spans *spans, uint32_t number, uint64_t commit_index,
                         uint64_t now_ns)
{
    struct span_shard *shard = spans->shards[number];
    uint64_t took_ns = 0;

    for (uint32_t i = 0; shard != NULL && i < shard->count; i++) {
        struct span_write *write = write_at(shard, i);
        if (write->committed_ns != 0)
            break;
        if (write->last > commit_index)
            continue;
        write->committed_ns = now_ns;
        if (took_ns == 0)
            took_ns = now_ns - write->handed_ns;
    }
    return took_ns;
}

void spans_forget(struct spans *spans, uint32_t number)
{
    struct span_shard *shard = spans->shards[number];

    if (shard == NULL)
        return;
    shard->count = 0;
    shard->open_first = 0;
}

/* NULL: the entry is in none that is remembered. */
static const struct span_write *find_write(const struct spans *spans, uint32_t number,
                                           uint64_t index)
{
    struct span_shard *shard = spans->shards[number];

    for (uint32_t i = 0; shard != NULL && i < shard->count; i++) {
        const struct span_write *write = write_at(shard, i);
        if (index > write->last)
            return NULL;
        if (index >= write->first)
            return write;
    }
    return NULL;
}

const uint8_t *spans_trace(const struct spans *spans, uint32_t number, uint64_t first,
                           uint64_t last)
{
    struct span_shard *shard = spans->shards[number];
    const uint8_t *trace = NULL;

    for (uint32_t i = 0; shard != NULL && i < shard->count; i++) {
        const struct span_write *write = write_at(shard, i);
        if (write->last < first)
            break;
        if (write->first <= last && trace_is_set(write->trace))
            trace = write->trace;
    }
    return trace;
}

const struct span_call *spans_find(const struct spans *spans, uint64_t call)
{
    const struct span_call *place = &spans->calls[call % SPAN_CALLS];

    return place->call == call && call != 0 ? place : NULL;
}

/* `at_ns` within [from_ns, now_ns]; what has not happened is now. */
static uint64_t between(uint64_t from_ns, uint64_t at_ns, uint64_t now_ns)
{
    if (at_ns == 0 || at_ns > now_ns)
        return now_ns;
    return at_ns > from_ns ? at_ns : from_ns;
}

void spans_times(const struct spans *spans, const struct span_call *call, uint64_t now_ns,
                 struct span_times *ret_times)
{
    const struct span_write *write =
        call->index != 0 ? find_write(spans, call->shard, call->index) : NULL;
    uint64_t arrived_ns = call->arrived_ns < now_ns ? call->arrived_ns : now_ns;
    uint64_t begun_ns = between(arrived_ns, call->begun_ns, now_ns);

    *ret_times = (struct span_times){ .queue_ns = begun_ns - arrived_ns };
    if (write == NULL) {
        ret_times->rest_ns = now_ns - begun_ns;
        return;
    }
    uint64_t handed_ns = between(begun_ns, write->handed_ns, now_ns);
    uint64_t committed_ns = between(handed_ns, write->committed_ns, now_ns);
    uint64_t persisted_ns = between(handed_ns, write->persisted_ns, committed_ns);
    ret_times->logged = true;
    ret_times->prepare_ns = handed_ns - begun_ns;
    ret_times->log_ns = persisted_ns - handed_ns;
    ret_times->replicas_ns = committed_ns - persisted_ns;
    ret_times->apply_ns = now_ns - committed_ns;
}
