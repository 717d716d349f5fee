#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/request/list_page.h"
#include "router/rpc/admin/node_survey.h"
#include "runtime/cluster/incarnation.h"

#define PAGE_SIZE_MAX 512u

struct shard_page {
    struct request *request;
    const struct node_survey *survey;
    uint32_t first;
    uint32_t size;
    Holdfast__V1__ListShardsResponse response;
};

static char state_unreachable[] = "unreachable";
static char state_ok[] = "ok";
static char state_catching_up[] = "catching_up";
static char phase_stable[] = "stable";
static char phase_joint[] = "joint";
static char phase_learning[] = "learning";

/* What a node says of one replica: of its own, or as the owner of another one. */
static const Holdfast__V1__ReplicaStatus *find_own(const Holdfast__V1__ShardStatus *said,
                                                   uint64_t replica_id)
{
    for (size_t i = 0; said != NULL && i < said->n_replicas; i++) {
        if (said->replicas[i]->replica_id == replica_id)
            return said->replicas[i];
    }
    return NULL;
}

/* What the owner knows of another member: whether it follows. */
static void add_owners_view(struct shard_page *page, const Holdfast__V1__ShardStatus *status,
                            Holdfast__V1__ReplicaStatus *replica)
{
    const Holdfast__V1__ShardStatus *said =
        node_survey_find_shard(page->survey, status->owner, status->shard);
    const Holdfast__V1__ReplicaStatus *seen = find_own(said, replica->replica_id);

    if (seen == NULL || replica->replica_id == status->owner || !said->serving)
        return;
    replica->acknowledged_index = seen->acknowledged_index;
    replica->stalled_ms = seen->stalled_ms;
    if (strcmp(replica->state, state_ok) == 0 && seen->state != NULL &&
        strcmp(seen->state, state_catching_up) == 0)
        replica->state = state_catching_up;
}

static Holdfast__V1__ReplicaStatus *
make_replica(struct shard_page *page, const Holdfast__V1__ShardStatus *status, uint64_t replica_id)
{
    Holdfast__V1__ReplicaStatus *replica = arena_alloc(page->request->arena, sizeof *replica);
    const Holdfast__V1__ReplicaStatus *own =
        find_own(node_survey_find_shard(page->survey, replica_id, status->shard), replica_id);

    holdfast__v1__replica_status__init(replica);
    if (own != NULL)
        *replica = *own;
    else
        replica->state = state_unreachable;
    if (replica->state == NULL || replica->state[0] == 0)
        replica->state = state_ok;
    replica->replica_id = replica_id;
    add_owners_view(page, status, replica);
    return replica;
}

static void add_members(struct shard_page *page, Holdfast__V1__ShardStatus *status,
                        const uint64_t *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool seen = false;

        for (size_t k = 0; k < status->n_members; k++)
            seen = seen || status->members[k] == members[i];
        if (seen)
            continue;
        status->members[status->n_members++] = members[i];
        status->replicas[status->n_replicas++] = make_replica(page, status, members[i]);
    }
}

static Holdfast__V1__ShardStatus *make_shard(struct shard_page *page, uint32_t shard)
{
    struct arena *arena = page->request->arena;
    const struct shard_entry *entry = shard_map_find(page->request->router->options.map, shard);
    Holdfast__V1__ShardStatus *status = arena_alloc(arena, sizeof *status);
    const Holdfast__V1__ShardStatus *said;

    holdfast__v1__shard_status__init(status);
    status->shard = shard;
    if (entry == NULL)
        return status;
    status->epoch = entry->record.epoch;
    status->owner = entry->record.owner;
    status->config = entry->record.config;
    status->phase = entry->record.phase == SHARD_JOINT ? phase_joint
                    : entry->record.learner != 0       ? phase_learning
                                                       : phase_stable;
    status->learner = entry->record.learner;
    status->members = arena_alloc(arena, 2 * CLUSTER_MEMBERS_MAX * sizeof *status->members);
    status->replicas = arena_alloc(arena, 2 * CLUSTER_MEMBERS_MAX * sizeof(void *));
    add_members(page, status, entry->record.members, entry->record.member_count);
    add_members(page, status, entry->record.new_members, entry->record.new_member_count);
    said = node_survey_find_shard(page->survey, status->owner, shard);
    if (said != NULL) {
        status->serving = said->serving;
        status->sessions = said->sessions;
        status->apply_version = said->apply_version;
        status->transfers_open = said->transfers_open;
        status->transfers_oldest_ms = said->transfers_oldest_ms;
        status->transfers_retried = said->transfers_retried;
    }
    return status;
}

static void surveyed(struct node_survey *survey)
{
    struct shard_page *page = survey->user;
    uint32_t shard_count = shard_map_shard_count(survey->request->router->options.map);
    Holdfast__V1__ListShardsResponse *response = &page->response;
    uint32_t end = page->first + page->size;

    page->survey = survey;
    if (end > shard_count)
        end = shard_count;
    response->shards = arena_alloc(page->request->arena, (page->size + 1) * sizeof(void *));
    for (uint32_t shard = page->first; shard < end; shard++)
        response->shards[response->n_shards++] = make_shard(page, shard);
    if (end < shard_count)
        response->next_cursor =
            list_page_next(page->request, arena_printf(page->request->arena, "%u", end));
    request_reply(page->request, &response->base);
}

void admin_list_shards_handle(struct request *request)
{
    struct shard_page *page = arena_zalloc(request->arena, sizeof *page);
    struct list_page asked;
    uint64_t first = 0;

    if (!list_page_begin(request, (struct list_limits){ PAGE_SIZE_MAX, PAGE_SIZE_MAX }, &asked) ||
        !list_page_number(request, &asked, CLUSTER_SHARDS_MAX, &first))
        return;
    page->request = request;
    page->first = (uint32_t)first;
    page->size = asked.size;
    holdfast__v1__list_shards_response__init(&page->response);
    node_survey_start(request, surveyed, page);
}
