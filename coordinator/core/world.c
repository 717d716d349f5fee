#include "coordinator/core/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define WORLD_UID          "0123456789abcdef" /* Of the one item. */
#define WORLD_ANSWER_BYTES 16384u

#define CLUSTER WORLD_CLUSTER
#define SHARDS  WORLD_SHARDS

/* ---- etcd ---- */
struct world_kv *world_find(struct world *world, struct slice key)
{
    for (uint32_t i = 0; i < WORLD_KEYS_MAX; i++) {
        struct world_kv *kv = &world->kvs[i];

        if (kv->create_revision > 0 && slice_equal(slice_from_text(kv->key), key))
            return kv;
    }
    return NULL;
}

static void announce(struct world *world, const struct world_kv *kv)
{
    if (world->mirror_stopped)
        return;
    world_step(world, (struct coord_event){ .type = COORD_PUT,
                                            .key = slice_from_text(kv->key),
                                            .value = buf_slice(&kv->value),
                                            .create_revision = kv->create_revision,
                                            .mod_revision = kv->mod_revision });
}

static void put(struct world *world, struct slice key, struct slice value)
{
    struct world_kv *kv = world_find(world, key);

    for (uint32_t i = 0; kv == NULL; i++) {
        CHECK(i < WORLD_KEYS_MAX && key.size < sizeof world->kvs[i].key);
        if (world->kvs[i].create_revision > 0)
            continue;
        kv = &world->kvs[i];
        kv->create_revision = world->revision;
        memcpy(kv->key, key.data, key.size);
        kv->key[key.size] = '\0';
    }
    kv->mod_revision = world->revision;
    buf_clear(&kv->value);
    buf_append(&kv->value, value.data, value.size);
}

void world_put(struct world *world, struct cluster_key key, struct buf *value)
{
    world->revision++;
    put(world, cluster_key_slice(&key), buf_slice(value));
    buf_deinit(value);
    announce(world, world_find(world, cluster_key_slice(&key)));
}

void world_remove(struct world *world, struct slice key)
{
    struct world_kv *kv = world_find(world, key);

    CHECK(kv != NULL);
    world->revision++;
    kv->create_revision = 0;
    if (!world->mirror_stopped)
        world_step(world, (struct coord_event){ .type = COORD_DELETED,
                                                .key = slice_from_text(kv->key),
                                                .mod_revision = world->revision });
}

/* Mirror events of a transaction come after its answer here; the core must not care. */
static bool carry_out(struct world *world, const struct coord_write *write)
{
    const struct world_kv *kv = world_find(world, write->key);

    if ((kv == NULL ? 0 : kv->mod_revision) != write->mod_revision)
        return false;
    if (write->absent_key.size > 0 && world_find(world, write->absent_key) != NULL)
        return false;
    kv = write->after_key.size > 0 ? world_find(world, write->after_key) : NULL;
    if (write->after_key.size > 0 && (kv == NULL ? 0 : kv->mod_revision) != write->after_revision)
        return false;
    if (world->watch.wrote != NULL)
        world->watch.wrote(world->watch.user, write);
    if (write->remove)
        world_find(world, write->key)->create_revision = 0;
    else
        put(world, write->key, write->value);
    return true;
}

static void announce_txn(struct world *world, const struct coord_write *write, bool written)
{
    const struct world_kv *kv = world_find(world, write->key);

    if (!written || world->mirror_stopped || world->txns_unseen)
        return;
    if (kv != NULL)
        announce(world, kv);
    else
        world_step(world, (struct coord_event){ .type = COORD_DELETED,
                                                .key = write->key,
                                                .mod_revision = world->revision });
}

static void answer_txn(struct world *world, const struct coord_txn *txn)
{
    bool written[COORD_TXN_WRITES_MAX] = { false };
    struct coord_event done = { .type = COORD_TXN_DONE, .ticket = txn->ticket };
    const struct world_kv *election = world_find(world, txn->election_key);

    world->txns++;
    if (world->watch.sent != NULL)
        world->watch.sent(world->watch.user, txn);
    done.outcome = COORD_TXN_ANSWERED;
    if (world->fault == WORLD_SILENT) {
        done.outcome = COORD_TXN_UNKNOWN;
    } else if (txn->election_key.size > 0 &&
               (election == NULL || election->create_revision != txn->election_revision)) {
        done.outcome = COORD_TXN_DEPOSED;
    } else {
        world->revision++;
        for (uint32_t i = 0; i < txn->write_count; i++)
            written[i] = carry_out(world, &txn->writes[i]);
        if (world->fault == WORLD_ANSWER_LOST)
            done.outcome = COORD_TXN_UNKNOWN;
    }
    done.written = written;
    done.mod_revision = world->revision;
    /* Keys are borrowed from the core, whose next step may reuse them. */
    struct coord_write writes[COORD_TXN_WRITES_MAX];
    struct arena arena = { 0 };
    uint32_t count = txn->write_count;

    for (uint32_t i = 0; i < count; i++)
        writes[i] = (struct coord_write){ .key = arena_copy(&arena, txn->writes[i].key) };
    world_step(world, done);
    for (uint32_t i = 0; i < count; i++)
        announce_txn(world, &writes[i], written[i]);
    arena_deinit(&arena);
}

/* ---- shards ---- */
struct shard_record world_shard(struct world *world, uint32_t shard)
{
    struct cluster_key key = cluster_key_shard(CLUSTER, shard);
    struct world_kv *kv = world_find(world, cluster_key_slice(&key));
    struct shard_record record;

    CHECK(kv != NULL);
    CHECK(shard_record_decode(buf_slice(&kv->value), &record, NULL) == ERR_OK);
    return record;
}

static void note_body(struct world *world, const struct coord_call *call)
{
    if (call->method == METHOD_EXPIRE_SERVER) {
        Holdfast__Internal__V1__ExpireServerRequest *request =
            holdfast__internal__v1__expire_server_request__unpack(NULL, call->body.size,
                                                                  call->body.data);
        CHECK(request != NULL && request->shard == call->shard);
        snprintf(world->lowest_live, sizeof world->lowest_live, "%s", request->lowest_live);
        snprintf(world->expired_from, sizeof world->expired_from, "%s", request->from);
        holdfast__internal__v1__expire_server_request__free_unpacked(request, NULL);
        world->calls_expire++;
        return;
    }
    if (call->method == METHOD_TAKE_CUT || call->method == METHOD_AUDIT_SEARCH ||
        call->method == METHOD_CONTAIN_PLAYER || call->method == METHOD_MEMBER_STATE ||
        call->method == METHOD_DEFINE || call->method == METHOD_GET_DEFINED)
        return;
    CHECK(call->method == METHOD_APPLY_POLICY);
    Holdfast__Internal__V1__ApplyPolicyRequest *request =
        holdfast__internal__v1__apply_policy_request__unpack(NULL, call->body.size,
                                                             call->body.data);
    CHECK(request != NULL && request->shard == call->shard);
    world->policy_version = request->policy->version;
    holdfast__internal__v1__apply_policy_request__free_unpacked(request, NULL);
    world->calls_policy++;
}

/* Each is taken, and told to be in force. */
static size_t apply_policy(const struct coord_call *call, uint8_t *bytes)
{
    Holdfast__Internal__V1__ApplyPolicyResponse response =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_RESPONSE__INIT;
    Holdfast__Internal__V1__ApplyPolicyRequest *request =
        holdfast__internal__v1__apply_policy_request__unpack(NULL, call->body.size,
                                                             call->body.data);

    CHECK(request != NULL);
    response.generation = request->generation;
    response.version = request->policy->version;
    holdfast__internal__v1__apply_policy_request__free_unpacked(request, NULL);
    return holdfast__internal__v1__apply_policy_response__pack(&response, bytes);
}

/* As shards take spans in (node/core/definition). Both answers have the same first fields. */
static size_t define(struct world *world, const struct coord_call *call, uint8_t *bytes)
{
    uint64_t *stands = world->defined[call->shard];
    Holdfast__Internal__V1__DefineResponse response = HOLDFAST__INTERNAL__V1__DEFINE_RESPONSE__INIT;

    if (call->method == METHOD_DEFINE) {
        Holdfast__Internal__V1__DefineRequest *request =
            holdfast__internal__v1__define_request__unpack(NULL, call->body.size, call->body.data);
        CHECK(request != NULL && request->shard == call->shard);
        bool next = request->generation == stands[0] && request->from_revision <= stands[1];
        bool begins = request->generation > stands[0] && request->from_revision == 0;
        if (begins || (next && request->to_revision > stands[1])) {
            stands[0] = request->generation;
            stands[1] = request->to_revision;
        }
        world->defines++;
        holdfast__internal__v1__define_request__free_unpacked(request, NULL);
    }
    response.generation = stands[0];
    response.revision = stands[1];
    return holdfast__internal__v1__define_response__pack(&response, bytes);
}

/* Shard 0 tells of all who hold the item without its having been made for them. */
static void tell_item(const struct world *world, uint32_t shard, bool with_buckets,
                      Holdfast__Internal__V1__CutTotals *part, uint8_t bytes[16])
{
    uint64_t hash = hash_u64((struct slice){ (const uint8_t *)WORLD_UID, 16 });
    struct buf bucket = { 0 };

    part->has_buckets = with_buckets;
    if (shard != 0 || world->items == 0)
        return;
    part->count = world->items;
    part->hashes = hash * (uint64_t)(int64_t)world->items;
    buf_put_u32(&bucket, (uint32_t)(hash % 4096));
    buf_put_u32(&bucket, (uint32_t)world->items);
    buf_put_u64(&bucket, part->hashes);
    memcpy(bytes, bucket.data, 16);
    buf_deinit(&bucket);
    part->buckets.data = bytes;
    part->buckets.len = with_buckets ? 16 : 0;
}

/* One page: the player of the shard. */
static size_t search(struct world *world, const struct coord_call *call, uint8_t *bytes)
{
    Holdfast__Internal__V1__AuditSearchRequest *request =
        holdfast__internal__v1__audit_search_request__unpack(NULL, call->body.size,
                                                             call->body.data);
    Holdfast__Internal__V1__AuditSearchResponse response =
        HOLDFAST__INTERNAL__V1__AUDIT_SEARCH_RESPONSE__INIT;
    Holdfast__Internal__V1__FoundItem item = HOLDFAST__INTERNAL__V1__FOUND_ITEM__INIT;
    Holdfast__Internal__V1__FoundWallet wallet = HOLDFAST__INTERNAL__V1__FOUND_WALLET__INIT;
    Holdfast__Internal__V1__FoundItem *items[] = { &item };
    Holdfast__Internal__V1__FoundWallet *wallets[] = { &wallet };
    char player[16], uid[33];

    CHECK(request != NULL && request->shard == call->shard);
    world->searches++;
    (void)snprintf(player, sizeof player, "p%u", call->shard);
    for (size_t i = 0; i < 16; i++)
        (void)snprintf(uid + i * 2, 3, "%02x", (unsigned)(uint8_t)WORLD_UID[i]);
    item.player_id = wallet.player_id = player;
    item.item_uid = uid;
    wallet.currency = text_lend("gold");
    wallet.too_many = world->rich[call->shard];
    response.items = items;
    response.n_items = request->n_buckets > 0 && world->holds[call->shard];
    response.wallets = wallets;
    response.n_wallets = request->n_currencies > 0 && wallet.too_many != 0;
    if (request->cursor[0] == 0 && call->shard == 1) {
        response.n_items = response.n_wallets = 0; /* Of two pages the first is empty. */
        response.next_cursor = text_lend("a");
    }
    if (world->watch.searched != NULL) {
        holdfast__internal__v1__audit_search_response__init(&response);
        world->watch.searched(world->watch.user, request, &response);
    }
    holdfast__internal__v1__audit_search_request__free_unpacked(request, NULL);
    CHECK(holdfast__internal__v1__audit_search_response__get_packed_size(&response) <=
          WORLD_ANSWER_BYTES);
    return holdfast__internal__v1__audit_search_response__pack(&response, bytes);
}

static size_t contain(struct world *world, const struct coord_call *call, uint8_t *bytes)
{
    Holdfast__Internal__V1__ContainPlayerRequest *request =
        holdfast__internal__v1__contain_player_request__unpack(NULL, call->body.size,
                                                               call->body.data);
    Holdfast__Internal__V1__ContainPlayerResponse response =
        HOLDFAST__INTERNAL__V1__CONTAIN_PLAYER_RESPONSE__INIT;

    CHECK(request != NULL && request->shard == call->shard && request->player_id[0] == 'p');
    world->containments++;
    response.contained = !world->contained[call->shard];
    world->contained[call->shard] = true;
    (void)snprintf(world->reason, sizeof world->reason, "%s", request->reason);
    holdfast__internal__v1__contain_player_request__free_unpacked(request, NULL);
    return holdfast__internal__v1__contain_player_response__pack(&response, bytes);
}

/* The shard's part of the two cuts before this one. */
static size_t take_cut(struct world *world, const struct coord_call *call, uint8_t *bytes)
{
    Holdfast__Internal__V1__TakeCutRequest *request =
        holdfast__internal__v1__take_cut_request__unpack(NULL, call->body.size, call->body.data);
    Holdfast__Internal__V1__TakeCutResponse response =
        HOLDFAST__INTERNAL__V1__TAKE_CUT_RESPONSE__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    Holdfast__Internal__V1__CutTotals parts[2];
    Holdfast__Internal__V1__CutTotals *list[2];
    uint8_t bucket_bytes[2][16];
    uint64_t *cuts = world->cuts[call->shard];

    CHECK(request != NULL && request->shard == call->shard && request->cut > 0);
    gold.currency = text_lend("gold");
    gold.amount = world->gold[call->shard];
    for (size_t i = 0; i < 2 && cuts[i] > 0; i++) {
        holdfast__internal__v1__cut_totals__init(&parts[i]);
        parts[i].cut = cuts[i];
        parts[i].open = world->open[call->shard];
        parts[i].amounts = amounts;
        parts[i].n_amounts = gold.amount != 0;
        if (world->watch.counted != NULL)
            world->watch.counted(world->watch.user, call->shard, request->with_buckets, &parts[i]);
        else
            tell_item(world, call->shard, request->with_buckets, &parts[i], bucket_bytes[i]);
        list[response.n_totals++] = &parts[i];
    }
    if (request->cut > cuts[0]) {
        memmove(cuts + 1, cuts, 2 * sizeof *cuts);
        cuts[0] = request->cut;
    }
    response.cut = cuts[0];
    response.totals = list;
    holdfast__internal__v1__take_cut_request__free_unpacked(request, NULL);
    return holdfast__internal__v1__take_cut_response__pack(&response, bytes);
}

static size_t tell_members(struct world *world, const struct coord_call *call, uint8_t *bytes)
{
    Holdfast__Internal__V1__MemberStateResponse response =
        HOLDFAST__INTERNAL__V1__MEMBER_STATE_RESPONSE__INIT;
    struct shard_record record = world_shard(world, call->shard);
    Holdfast__Internal__V1__MemberLag lags[CLUSTER_MEMBERS_MAX];
    Holdfast__Internal__V1__MemberLag *list[CLUSTER_MEMBERS_MAX];

    response.members = list;
    for (uint32_t i = 0; i < record.member_count; i++) {
        if (record.members[i] == record.owner)
            continue;
        list[response.n_members] = &lags[response.n_members];
        holdfast__internal__v1__member_lag__init(list[response.n_members]);
        list[response.n_members]->replica_id = record.members[i];
        list[response.n_members++]->lag = world->member_lag;
    }
    world->states++;
    response.epoch = record.epoch;
    response.config = record.config;
    response.learner = record.learner;
    response.learner_lag = world->learner_lag;
    response.learner_silent_ms = world->learner_silent_ms;
    response.documents_lacking = record.new_member_count > 0 ? world->documents_lacking : 0;
    response.operations = world->done_milli[call->shard] / 1000;
    return holdfast__internal__v1__member_state_response__pack(&response, bytes);
}

/* A replica knows the records that stand, unless a test has it know later ones. */
static size_t tell_known(struct world *world, const struct coord_call *call, uint8_t *bytes)
{
    Holdfast__Internal__V1__GetNodeStatusResponse response =
        HOLDFAST__INTERNAL__V1__GET_NODE_STATUS_RESPONSE__INIT;
    Holdfast__Internal__V1__KnownShard known[SHARDS];
    Holdfast__Internal__V1__KnownShard *list[SHARDS];

    world->words++;
    for (uint32_t i = 0; i < SHARDS; i++) {
        holdfast__internal__v1__known_shard__init(&known[i]);
        known[i].shard = i;
        known[i].epoch = world->epochs_known[call->node % 16][i];
        known[i].owner = world->owners_known[call->node % 16][i];
        known[i].config = world->configs_known[call->node % 16][i];
        known[i].mute = world->mute_node == call->node;
        known[i].members = &world->holder;
        known[i].n_members = world->holder == call->node;
        if (known[i].epoch > 0 || known[i].config > 0 || known[i].mute || known[i].n_members > 0)
            list[response.n_known++] = &known[i];
    }
    response.known = list;
    return holdfast__internal__v1__get_node_status_response__pack(&response, bytes);
}

static void answer_call(struct world *world, const struct coord_call *call)
{
    enum wire_status status = WIRE_OK;
    uint8_t bytes[WORLD_ANSWER_BYTES];
    size_t size = 0;

    if (call->method == METHOD_GET_NODE_STATUS) {
        if (call->node == world->deaf_node)
            status = WIRE_UNKNOWN;
        else
            size = tell_known(world, call, bytes);
        world_step(world, (struct coord_event){ .type = COORD_CALL_DONE,
                                                .call = call->call,
                                                .status = status,
                                                .body = { bytes, size } });
        return;
    }
    if (call->node == world->deaf_node)
        status = WIRE_UNKNOWN;
    else if (world_shard(world, call->shard).owner != call->node)
        status = WIRE_NOT_OWNER;
    if (world->uncontainable && call->method == METHOD_CONTAIN_PLAYER)
        status = WIRE_UNKNOWN;
    if (status == WIRE_OK && call->method == METHOD_MEMBER_STATE && world->unstarted)
        status = WIRE_NOT_OWNER;
    if (status == WIRE_OK && world->watch.called != NULL)
        world->watch.called(world->watch.user, call);
    if (status == WIRE_OK)
        note_body(world, call);
    if (status == WIRE_OK && call->method == METHOD_TAKE_CUT)
        size = take_cut(world, call, bytes);
    else if (status == WIRE_OK && call->method == METHOD_APPLY_POLICY)
        size = apply_policy(call, bytes);
    else if (status == WIRE_OK && call->method == METHOD_AUDIT_SEARCH)
        size = search(world, call, bytes);
    else if (status == WIRE_OK && call->method == METHOD_CONTAIN_PLAYER)
        size = contain(world, call, bytes);
    else if (status == WIRE_OK && call->method == METHOD_MEMBER_STATE)
        size = tell_members(world, call, bytes);
    else if (status == WIRE_OK &&
             (call->method == METHOD_DEFINE || call->method == METHOD_GET_DEFINED))
        size = define(world, call, bytes);
    if (size > 0 && call->node == world->garbled_node) {
        memset(bytes, 0xff, sizeof bytes);
        size = 3;
    }
    world_step(world, (struct coord_event){ .type = COORD_CALL_DONE,
                                            .call = call->call,
                                            .status = status,
                                            .body = { bytes, size } });
}

/* ---- steps ---- */
void world_step(struct world *world, struct coord_event event)
{
    event.now_ms = world->now_ms;
    coord_step(world->coord, &event, &world->out);
    coord_check(world->coord);
}

void world_settle(struct world *world)
{
    for (int round = 0; round < 100; round++) {
        struct coord_out out = world->out;

        if (out.txn_count == 0 && out.call_count == 0 && out.answer_count == 0)
            return;
        world->out = (struct coord_out){ 0 };
        for (uint32_t i = 0; i < out.answer_count && world->watch.answered != NULL; i++)
            world->watch.answered(world->watch.user, &out.answers[i]);
        for (uint32_t i = 0; i < out.txn_count; i++)
            answer_txn(world, &out.txns[i]);
        for (uint32_t i = 0; i < out.call_count; i++)
            answer_call(world, &out.calls[i]);
        coord_out_deinit(&out);
    }
    CHECK(false); /* The coordinator never comes to rest. */
}

void world_run(struct world *world, uint64_t ms)
{
    for (uint64_t end_ms = world->now_ms + ms; world->now_ms < end_ms;) {
        world->now_ms += world->tick_ms;
        for (uint32_t i = 0; i < SHARDS; i++)
            world->done_milli[i] += world->rates[i] * world->tick_ms;
        world_step(world, (struct coord_event){ .type = COORD_TICK });
        world_settle(world);
    }
}

static struct coord *make_coordinator(struct world *world)
{
    struct cluster_record initial = {
        .cluster_id = "01890a5d-ac96-774b-bcce-b302099a8057",
        .generation = 1,
        .shard_count = SHARDS,
        .replication_factor = 3,
        .created_by = "test",
    };
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    uint8_t bytes[64];

    policy.version = 1;
    return coord_new(&(struct coord_options){
        .cluster = CLUSTER,
        .limits = &world->limits,
        .initial = &initial,
        .initial_policy = { bytes, holdfast__v1__policy__pack(&policy, bytes) },
    });
}

struct world *world_new(void)
{
    struct world *world = mem_zalloc(sizeof *world);

    world->limits = coord_limits_default();
    world->now_ms = 1000;
    world->tick_ms = 20;
    world->revision = 10;
    world->coord = make_coordinator(world);
    world_step(world, (struct coord_event){ .type = COORD_SYNCED });
    return world;
}

void world_free(struct world *world)
{
    for (uint32_t i = 0; i < WORLD_KEYS_MAX; i++)
        buf_deinit(&world->kvs[i].value);
    coord_out_deinit(&world->out);
    coord_free(world->coord);
    free(world);
}

void world_refresh(struct world *world)
{
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < WORLD_KEYS_MAX; i++) {
            bool cluster = strstr(world->kvs[i].key, "/cluster") != NULL;

            if (world->kvs[i].create_revision > 0 && cluster == (pass == 0))
                announce(world, &world->kvs[i]);
        }
    }
    world_step(world, (struct coord_event){ .type = COORD_SYNCED });
}

void world_replace_coordinator(struct world *world)
{
    coord_free(world->coord);
    coord_out_deinit(&world->out);
    world->coord = make_coordinator(world);
    world_refresh(world);
}

static struct cluster_key election_key(uint32_t term)
{
    struct cluster_key key = cluster_key_election_prefix(CLUSTER);
    size_t used = strlen(key.text);

    snprintf(key.text + used, sizeof key.text - used, "%x", term);
    return key;
}

void world_depose(struct world *world)
{
    struct cluster_key key = election_key(world->term);
    bool stopped = world->mirror_stopped;

    world->mirror_stopped = true;
    if (world_find(world, cluster_key_slice(&key)) != NULL)
        world_remove(world, cluster_key_slice(&key));
    world->mirror_stopped = stopped;
}

void world_elect(struct world *world)
{
    struct buf value = { 0 };

    struct cluster_key old = election_key(world->term);

    world_depose(world);
    if (!world->mirror_stopped) /* Heard of by now. */
        world_step(world, (struct coord_event){ .type = COORD_DELETED,
                                                .key = cluster_key_slice(&old),
                                                .mod_revision = world->revision });
    struct cluster_key key = election_key(++world->term);

    world_put(world, key, &value);
    world_step(world, (struct coord_event){ .type = COORD_ELECTED,
                                            .key = cluster_key_slice(&key),
                                            .wall_ms = world->now_ms + world->clock_ms,
                                            .create_revision = world->revision });
    world_settle(world);
}
