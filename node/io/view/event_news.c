#include "node/io/view/event_news.h"

#include <pthread.h>
#include <stdlib.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"

struct event_news {
    pthread_mutex_t lock;
    uint64_t life;
    uint64_t now;     /* The number of the last note. */
    uint64_t *stamps; /* By shard, of its last note; 0: there was none. */
    uint32_t shard_count;
    bool wanted; /* A router waits for the next note. */
    void (*added)(void *user);
    void *added_user;
};

struct event_news *event_news_new(uint32_t shard_count, uint64_t life)
{
    struct event_news *news = mem_zalloc(sizeof *news);

    CHECK(life != 0);
    CHECK(pthread_mutex_init(&news->lock, NULL) == 0);
    news->life = life;
    news->shard_count = shard_count;
    news->stamps = mem_zalloc(((size_t)shard_count + 1) * sizeof *news->stamps);
    return news;
}

void event_news_free(struct event_news *news)
{
    if (news == NULL)
        return;
    pthread_mutex_destroy(&news->lock);
    free(news->stamps);
    free(news);
}

void event_news_set_listener(struct event_news *news, void (*added)(void *user), void *user)
{
    news->added = added;
    news->added_user = user;
}

void event_news_note(struct event_news *news, uint32_t shard)
{
    CHECK(shard < news->shard_count);
    pthread_mutex_lock(&news->lock);
    news->stamps[shard] = ++news->now;
    bool wanted = news->wanted;
    news->wanted = false;
    pthread_mutex_unlock(&news->lock);
    if (wanted && news->added != NULL)
        news->added(news->added_user);
}

/* Under the lock. */
static void fill(struct event_news *news, uint64_t after, struct arena *arena,
                 Holdfast__Internal__V1__ListEventNewsResponse *response)
{
    response->life = news->life;
    response->now = news->now;
    response->shards = arena_alloc(arena, (news->shard_count + 1u) * sizeof *response->shards);
    for (uint32_t i = 0; i < news->shard_count && after < news->now; i++) {
        if (news->stamps[i] > after)
            response->shards[response->n_shards++] = i;
    }
}

bool event_news_append(struct event_news *news, struct slice request, struct buf *out)
{
    Holdfast__Internal__V1__ListEventNewsResponse response =
        HOLDFAST__INTERNAL__V1__LIST_EVENT_NEWS_RESPONSE__INIT;
    struct arena arena = { 0 };
    const Holdfast__Internal__V1__ListEventNewsRequest *asked = (const void *)arena_unpack(
        &arena, &holdfast__internal__v1__list_event_news_request__descriptor, request);
    bool known = asked != NULL && asked->life == news->life;

    pthread_mutex_lock(&news->lock);
    /* What was known of another life says nothing of this one. */
    fill(news, known && asked->after <= news->now ? asked->after : 0, &arena, &response);
    bool any = response.n_shards > 0 || !known;
    news->wanted |= !any;
    pthread_mutex_unlock(&news->lock);
    struct slice bytes = arena_pack(&arena, &response.base);
    buf_append(out, bytes.data, bytes.size);
    arena_deinit(&arena);
    return any;
}
