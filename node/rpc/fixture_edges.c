#include "node/rpc/fixture_edges.h"

#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "node/core/erasure/erasure.h"
#include "node/core/top/pull_item.h"

static void define(struct fixture *f, Holdfast__Internal__V1__Defined *given)
{
    Holdfast__Internal__V1__DefineRequest request = HOLDFAST__INTERNAL__V1__DEFINE_REQUEST__INIT;

    given->version = given->revision;
    given->generation = request.generation = 1;
    request.to_revision = given->revision;
    request.last = true;
    request.n_definitions = 1;
    request.definitions = &given;
    assert_non_null(fixture_mutate(f, METHOD_DEFINE, &request.base));
}

void fixture_define(struct fixture *f, const struct fixture_collection *collection)
{
    Holdfast__Internal__V1__Defined given = HOLDFAST__INTERNAL__V1__DEFINED__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__CollectionBody edges = HOLDFAST__V1__COLLECTION_BODY__INIT;

    edges.conflict_policy = collection->policy;
    edges.edges_max = collection->edges_max;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COLLECTION;
    body.collection = &edges;
    given.number = collection->number;
    given.revision = collection->revision;
    given.name = text_lend(collection->name);
    given.body = &body;
    given.deleted = collection->deleted;
    define(f, &given);
}

void fixture_define_rate(struct fixture *f, const struct fixture_rate_rule *rule)
{
    Holdfast__Internal__V1__Defined given = HOLDFAST__INTERNAL__V1__DEFINED__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__RateRuleBody rate = HOLDFAST__V1__RATE_RULE_BODY__INIT;

    rate.subject = text_lend(rule->subject);
    rate.limit = rule->limit;
    rate.period_ms = rule->period_ms;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE;
    body.rate_rule = &rate;
    given.number = rule->number;
    given.revision = rule->revision;
    given.name = text_lend(rule->name);
    given.body = &body;
    given.deleted = rule->deleted;
    define(f, &given);
}

void fixture_define_flag(struct fixture *f, const struct fixture_flag_rule *rule)
{
    Holdfast__Internal__V1__Defined given = HOLDFAST__INTERNAL__V1__DEFINED__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__RateRuleBody rate = HOLDFAST__V1__RATE_RULE_BODY__INIT;

    rate.subject = text_lend("favorites");
    rate.period_ms = rule->period_ms;
    rate.flag_above = rule->flag_above;
    rate.account_age_ms = rule->account_age_ms;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_RATE_RULE;
    body.rate_rule = &rate;
    given.number = rule->number;
    given.revision = rule->revision;
    given.name = text_lend("wary");
    given.body = &body;
    define(f, &given);
}

void fixture_define_haste(struct fixture *f)
{
    fixture_define_rate(
        f, &(struct fixture_rate_rule){ 6, 11, "haste", "favorites", 1000000, 1000, false });
}

void fixture_define_favorites(struct fixture *f)
{
    fixture_define(f, &(struct fixture_collection){ 7, 10, "favorites", POLICY_HIGHEST, 0, false });
}

#define EDGE_FILL(request, edge, id)                                                               \
    do {                                                                                           \
        (request)->player_id = text_lend((edge)->player);                                          \
        (request)->op_id = text_lend(id);                                                          \
        (request)->target_id = text_lend((edge)->target);                                          \
        (request)->collection = text_lend((edge)->collection != NULL ? (edge)->collection : "");   \
        (request)->_ver_case = (edge)->ver > 0 ? 12 : 0;                                           \
        (request)->ver = (edge)->ver;                                                              \
        (request)->_if_ver_case = (edge)->if_ver > 0 ? 13 : 0;                                     \
        (request)->if_ver = (edge)->if_ver - ((edge)->if_ver > 0);                                 \
    } while (false)

const Holdfast__V1__FavoriteResponse *fixture_edge(struct fixture *f,
                                                   const struct fixture_edge *edge)
{
    static Holdfast__V1__FavoriteResponse told;
    Holdfast__V1__FavoriteRequest make = HOLDFAST__V1__FAVORITE_REQUEST__INIT;
    Holdfast__V1__UnfavoriteRequest take = HOLDFAST__V1__UNFAVORITE_REQUEST__INIT;
    const char *id = edge->op_id != NULL ? edge->op_id : fixture_op_id(f);

    if (!edge->gone) {
        EDGE_FILL(&make, edge, id);
        return fixture_mutate(f, METHOD_FAVORITE, &make.base);
    }
    EDGE_FILL(&take, edge, id);
    const Holdfast__V1__UnfavoriteResponse *response =
        fixture_mutate(f, METHOD_UNFAVORITE, &take.base);
    if (response == NULL)
        return NULL;
    holdfast__v1__favorite_response__init(&told);
    told.write = response->write;
    told.status = response->status;
    told.applied = response->applied;
    told.edges = response->edges;
    return &told;
}

const Holdfast__V1__FavoriteResponse *fixture_favorite(struct fixture *f, const char *player,
                                                       const char *target)
{
    return fixture_edge(f, &(struct fixture_edge){ .player = player, .target = target });
}

const Holdfast__V1__FavoriteResponse *fixture_unfavorite(struct fixture *f, const char *player,
                                                         const char *target)
{
    return fixture_edge(f,
                        &(struct fixture_edge){ .player = player, .target = target, .gone = true });
}

uint64_t fixture_partial(struct fixture *f, const char *collection, const char *target)
{
    Holdfast__Internal__V1__GetPartialsRequest request =
        HOLDFAST__INTERNAL__V1__GET_PARTIALS_REQUEST__INIT;
    char *targets[] = { text_lend(target) };

    request.collection = text_lend(collection);
    request.target_ids = targets;
    request.n_target_ids = 1;
    const Holdfast__Internal__V1__GetPartialsResponse *response =
        fixture_read(f, METHOD_GET_PARTIALS, &request.base);
    return response != NULL ? response->counts[0] : UINT64_MAX;
}

const Holdfast__V1__FavoriteStatus *fixture_status(struct fixture *f, const char *player,
                                                   const char *target)
{
    Holdfast__V1__BatchGetStatusRequest request = HOLDFAST__V1__BATCH_GET_STATUS_REQUEST__INIT;
    char *targets[] = { text_lend(target) };

    request.player_id = text_lend(player);
    request.target_ids = targets;
    request.n_target_ids = 1;
    const Holdfast__V1__BatchGetStatusResponse *response =
        fixture_read(f, METHOD_BATCH_GET_STATUS, &request.base);
    return response != NULL ? response->statuses[0] : NULL;
}

/* ---- rows against rows ---- */
static const struct fixture_row *row_find_key(const struct fixture *f, const struct row_key *key)
{
    for (uint32_t i = 0; i < f->row_count; i++) {
        if (slice_equal(buf_slice(&f->rows[i].key), row_key_slice(key)))
            return &f->rows[i];
    }
    return NULL;
}

/* What waits has a row that says so. */
static void check_review(struct fixture *f, const struct favorite_key *edge,
                         const struct favorite_row *row)
{
    struct review_row review;
    struct row_key key;

    if (favorite_edge_counts(row))
        return;
    review_key(&key, edge, row->flagged_at_ms);
    const struct fixture_row *found = row_find_key(f, &key);
    assert_non_null(found);
    assert_int_equal(review_row_decode(buf_slice(&found->key), buf_slice(&found->value), &review),
                     ERR_OK);
    assert_int_equal(review.flag, row->flag);
    assert_int_equal(review.made_at_ms, row->at_ms);
}

static void check_edge(struct fixture *f, const struct favorite_key *edge, struct slice value)
{
    char part;
    struct favorite_row row;
    struct favorite_key unused;
    struct row_key key;
    struct favorite_row same;
    uint64_t ver;

    assert_int_equal(favorite_row_decode(value, &row), ERR_OK);
    part = row.favorited ? FAVORED_EDGES : FAVORED_GONE;
    row_key_favored_prefix(&key, edge->entity, edge->collection, part);
    row_key_favored_add(&key, part, row.at_ms, edge->target);
    const struct fixture_row *listed = row_find_key(f, &key);
    assert_non_null(listed);
    assert_int_equal(
        favored_row_decode(buf_slice(&listed->key), buf_slice(&listed->value), &unused, &ver),
        ERR_OK);
    assert_int_equal(ver, row.ver);
    row_key_favorer_prefix(&key, edge->collection, edge->target);
    row_key_favorer_add(&key, edge->entity);
    const struct fixture_row *with_target = row_find_key(f, &key);
    assert_int_equal(with_target != NULL, row.favorited);
    if (with_target == NULL)
        return;
    assert_int_equal(favorer_row_read(buf_slice(&with_target->key), buf_slice(&with_target->value),
                                      &unused, &same),
                     ERR_OK);
    assert_int_equal(same.at_ms, row.at_ms);
    assert_int_equal(same.flag, row.flag);
    assert_int_equal(same.flagged_at_ms, row.flagged_at_ms);
    check_review(f, edge, &row);
}

static bool counts(const struct fixture_row *favorer)
{
    struct favorite_key unused;
    struct favorite_row edge;

    return favorer_row_read(buf_slice(&favorer->key), buf_slice(&favorer->value), &unused, &edge) ==
               ERR_OK &&
           favorite_edge_counts(&edge);
}

/* How many rows of a table are of this player, or of this target and count, in the collection. */
static uint64_t count_rows(const struct fixture *f, enum table table,
                           const struct favorite_key *wanted)
{
    struct favorite_key key;
    uint64_t count = 0;

    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice bytes = buf_slice(&f->rows[i].key);
        if (bytes.data[0] != (uint8_t)table || favorite_key_parse(bytes, &key) != ERR_OK ||
            key.collection != wanted->collection || key.part != wanted->part)
            continue;
        count += table == TABLE_FAVORED
                     ? slice_equal(key.entity, wanted->entity)
                     : slice_equal(key.target, wanted->target) && counts(&f->rows[i]);
    }
    return count;
}

/* How many edges wait, of this player in the collection, or in all where there is no entity. */
static uint64_t count_reviews(const struct fixture *f, const struct favorite_key *wanted)
{
    struct favorite_key key;
    uint64_t count = 0;

    for (uint32_t i = 0; i < f->row_count; i++) {
        if (review_key_parse(buf_slice(&f->rows[i].key), &key) == ERR_OK)
            count += wanted->entity.size == 0 || (key.collection == wanted->collection &&
                                                  slice_equal(key.entity, wanted->entity));
    }
    return count;
}

static void check_counts(struct fixture *f, const struct favorite_key *key, struct slice bytes,
                         struct slice value)
{
    struct favorite_key wanted = *key;
    struct favorites_row own;
    struct partial_row partial;

    if (bytes.data[0] == TABLE_PARTIAL) {
        assert_int_equal(partial_row_decode(value, &partial), ERR_OK);
        assert_int_equal(partial.count, count_rows(f, TABLE_FAVORER, &wanted));
        return;
    }
    assert_int_equal(favorites_row_decode(value, &own), ERR_OK);
    wanted.part = FAVORED_EDGES;
    assert_int_equal(own.edges, count_rows(f, TABLE_FAVORED, &wanted));
    wanted.part = FAVORED_GONE;
    assert_int_equal(own.gone, count_rows(f, TABLE_FAVORED, &wanted));
    assert_int_equal(own.flagged, count_reviews(f, &wanted));
}

void fixture_check_edges(struct fixture *f)
{
    struct favorite_key key;
    uint64_t edges = 0, listed = 0;

    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice bytes = buf_slice(&f->rows[i].key);
        struct slice value = buf_slice(&f->rows[i].value);
        bool other = bytes.data[0] == TABLE_FAVORED || bytes.data[0] == TABLE_FAVORER;
        if (favorite_key_parse(bytes, &key) != ERR_OK)
            continue;
        edges += bytes.data[0] == TABLE_FAVORITE;
        listed += bytes.data[0] == TABLE_FAVORED;
        if (bytes.data[0] == TABLE_FAVORITE)
            check_edge(f, &key, value);
        else if (!other)
            check_counts(f, &key, bytes, value);
    }
    assert_int_equal(edges, listed);
    assert_int_equal(applier_meta(f->applier)->review_count,
                     count_reviews(f, &(struct favorite_key){ 0 }));
}

const Holdfast__V1__FlagEdgesResponse *fixture_review(struct fixture *f,
                                                      const struct fixture_review *review)
{
    static Holdfast__V1__FlagEdgesResponse response;
    char *targets[] = { text_lend(review->target), text_lend(review->other) };

#define REVIEW_FILL(request)                                                                       \
    do {                                                                                           \
        (request).player_id = text_lend(review->player);                                           \
        (request).op_id = review->op_id != NULL ? text_lend(review->op_id) : fixture_op_id(f);     \
        (request).authority = fixture_authority(                                                   \
            f, review->authority != NULL ? review->authority : "system:moderation");               \
        (request).collection = text_lend(review->collection != NULL ? review->collection : "");    \
        (request).target_ids = targets;                                                            \
        (request).n_target_ids = review->target == NULL ? 0u : review->other == NULL ? 1u : 2u;    \
        (request).reason = text_lend("looked at");                                                 \
    } while (false)
    response = (Holdfast__V1__FlagEdgesResponse)HOLDFAST__V1__FLAG_EDGES_RESPONSE__INIT;
    switch (review->method) {
    case METHOD_ACCEPT_EDGES: {
        Holdfast__V1__AcceptEdgesRequest request = HOLDFAST__V1__ACCEPT_EDGES_REQUEST__INIT;
        REVIEW_FILL(request);
        request.collection_number = review->number;
        const Holdfast__V1__AcceptEdgesResponse *told =
            fixture_mutate(f, METHOD_ACCEPT_EDGES, &request.base);
        if (told == NULL)
            return NULL;
        response.edges = told->edges;
        response.waiting = told->waiting;
        return &response;
    }
    case METHOD_REJECT_EDGES: {
        Holdfast__V1__RejectEdgesRequest request = HOLDFAST__V1__REJECT_EDGES_REQUEST__INIT;
        REVIEW_FILL(request);
        request.collection_number = review->number;
        const Holdfast__V1__RejectEdgesResponse *told =
            fixture_mutate(f, METHOD_REJECT_EDGES, &request.base);
        if (told == NULL)
            return NULL;
        response.edges = told->edges;
        response.waiting = told->waiting;
        return &response;
    }
    default: {
        Holdfast__V1__FlagEdgesRequest request = HOLDFAST__V1__FLAG_EDGES_REQUEST__INIT;
        REVIEW_FILL(request);
        request.all = review->all;
        request.after = text_lend(review->after != NULL ? review->after : "");
        const Holdfast__V1__FlagEdgesResponse *told =
            fixture_mutate(f, METHOD_FLAG_EDGES, &request.base);
        if (told == NULL)
            return NULL;
        response = *told;
        return &response;
    }
    }
#undef REVIEW_FILL
}

const Holdfast__V1__FlagEdgesResponse *fixture_decide(struct fixture *f, uint32_t method,
                                                      const char *player, const char *target)
{
    return fixture_review(
        f, &(struct fixture_review){ .method = method, .player = player, .target = target });
}

void fixture_take_totals(struct fixture *f)
{
    Holdfast__Internal__V1__PullPartialsRequest pull =
        HOLDFAST__INTERNAL__V1__PULL_PARTIALS_REQUEST__INIT;
    Holdfast__Internal__V1__TakePartialsRequest take =
        HOLDFAST__INTERNAL__V1__TAKE_PARTIALS_REQUEST__INIT;
    Holdfast__Internal__V1__PulledPart part = HOLDFAST__INTERNAL__V1__PULLED_PART__INIT;
    Holdfast__Internal__V1__PulledPart *parts[] = { &part };
    Holdfast__Internal__V1__GetPulledRequest pulled =
        HOLDFAST__INTERNAL__V1__GET_PULLED_REQUEST__INIT;
    Holdfast__Internal__V1__GetShardTopRequest top =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_REQUEST__INIT;
    const struct pull_home home = { .home = f->shard };
    struct buf homes = { 0 }, items = { 0 };
    struct pull_part told;

    pull_home_encode(&home, &homes);
    pull.shard = take.shard = pulled.shard = top.shard = part.source = f->shard;
    pull.homes = (ProtobufCBinaryData){ homes.size, homes.data };
    const Holdfast__Internal__V1__PullPartialsResponse *response =
        fixture_read(f, METHOD_PULL_PARTIALS, &pull.base);
    assert_non_null(response);
    struct reader reader = reader_from((struct slice){ response->parts.data, response->parts.len });
    assert_true(pull_part_next(&reader, &told));
    buf_append(&items, told.items.data, told.items.size);
    part.items = (ProtobufCBinaryData){ items.size, items.data };
    part.to_epoch = told.to.epoch;
    part.to_counter = told.to.counter;
    take.parts = parts;
    take.n_parts = 1;
    take.sweep = 8;
    assert_non_null(fixture_mutate(f, METHOD_TAKE_PARTIALS, &take.base));
    (void)fixture_read(f, METHOD_GET_PULLED, &pulled.base);
    top.limit = 3;
    (void)fixture_read(f, METHOD_GET_SHARD_TOP, &top.base);
    buf_deinit(&homes);
    buf_deinit(&items);
}

void fixture_read_favorites(struct fixture *f, const char *player)
{
    char *targets[] = { text_lend("tetris"), text_lend("pong"), text_lend("chess") };
    Holdfast__V1__ListFavoritesRequest list = HOLDFAST__V1__LIST_FAVORITES_REQUEST__INIT;
    Holdfast__V1__BatchGetStatusRequest status = HOLDFAST__V1__BATCH_GET_STATUS_REQUEST__INIT;
    Holdfast__V1__ListByTargetRequest who = HOLDFAST__V1__LIST_BY_TARGET_REQUEST__INIT;
    Holdfast__Internal__V1__GetPartialsRequest partials =
        HOLDFAST__INTERNAL__V1__GET_PARTIALS_REQUEST__INIT;
    Holdfast__V1__ListFlaggedEdgesRequest flagged = HOLDFAST__V1__LIST_FLAGGED_EDGES_REQUEST__INIT;

    list.player_id = status.player_id = text_lend(player);
    (void)fixture_read(f, METHOD_LIST_FLAGGED_EDGES, &flagged.base);
    status.target_ids = partials.target_ids = targets;
    status.n_target_ids = partials.n_target_ids = 3;
    who.target_id = targets[0];
    (void)fixture_read(f, METHOD_LIST_FAVORITES, &list.base);
    (void)fixture_read(f, METHOD_BATCH_GET_STATUS, &status.base);
    (void)fixture_read(f, METHOD_LIST_BY_TARGET, &who.base);
    (void)fixture_read(f, METHOD_GET_PARTIALS, &partials.base);
}

void fixture_erase(struct fixture *f, const char *player, bool stays)
{
    Holdfast__V1__ErasePlayerRequest request = HOLDFAST__V1__ERASE_PLAYER_REQUEST__INIT;
    Holdfast__V1__RestorePlayerRequest undo = HOLDFAST__V1__RESTORE_PLAYER_REQUEST__INIT;
    Holdfast__V1__GetErasureRequest get = HOLDFAST__V1__GET_ERASURE_REQUEST__INIT;
    Holdfast__V1__ExportPlayerRequest export = HOLDFAST__V1__EXPORT_PLAYER_REQUEST__INIT;

    request.player_id = undo.player_id = get.player_id = export.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = undo.authority = fixture_authority(f, "system:admin");
    (void)fixture_mutate(f, METHOD_ERASE_PLAYER, &request.base);
    (void)fixture_pass(f, ERASURE_PACE_MS / 2);
    (void)fixture_read(f, METHOD_GET_ERASURE, &get.base);
    (void)fixture_read(f, METHOD_EXPORT_PLAYER, &export.base);
    undo.op_id = fixture_op_id(f);
    if (!stays)
        (void)fixture_mutate(f, METHOD_RESTORE_PLAYER, &undo.base);
    for (uint32_t i = 0; i < 4 && !stays; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
}
