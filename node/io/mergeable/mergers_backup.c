/*
 * Documents into a backup and out of it (docs/backup.md).
 *
 * The owner's first page waits until the owner has what every member that it reaches had when it
 * was asked. Members are asked by messages of the shell, above all kinds of the core's:
 *
 *   ASK   u8 0xd1, u32 shard, u64 number
 *   TELL  u8 0xd2, u32 shard, u64 number, u64 generation, u8 has everything, clock
 *
 * The first part of a restore waits until each member has begun it on its disk: none takes a write
 * of before any more. A member that had documents by then never begins, and says so (SPOILED).
 */
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/backup.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/document/backup_rows.h"
#include "node/io/mergeable/mergers_internal.h"
#include "node/io/view/shard_view.h"
#include "runtime/base/check.h"

#define ASK               0xd1u
#define TELL              0xd2u
#define LOOK_MS           100u
#define GATHERS_MAX       16u
#define GATHER_MS_MAX     4000u /* What lacks comes behind reports, every MERGE_REPORT_MS. */
#define GATHER_MS_UNHEARD 300u  /* A member that was not heard lately is not waited for longer. */
#define ABSENT_MS         5000u /* Nor for that long again once it was waited for in vain. */
#define PART_BYTES_MAX    1800000u
#define OTHER_MEMBERS_MAX (2 * MEMBERS_MAX + MERGE_DEPARTING_MAX)
#define SPOILED           0u /* In place of a generation. */

struct asked {
    uint64_t member;
    bool told;
    bool departing;
    uint64_t until_ms; /* Waited for until then; 0: not at all. */
};

struct gather {
    struct gather *next;
    uint64_t call, number;
    uint32_t shard, bytes_max;
    uint64_t end_ms;
    uint32_t count;
    struct asked asked[OTHER_MEMBERS_MAX];
    struct mclock wanted; /* What those that told have. */
    struct buf restores;  /* The request that waits until all have begun; empty: a backup. */
    bool spoiled;
};

static void refuse_with(struct mergers *mergers, uint64_t call, Holdfast__V1__ErrorCode code,
                        const char *message)
{
    mergers_refuse(mergers, call, &(struct refusal){ .code = code, .message = message });
}

static const char spoiled_why[] =
    "a member of the shard has documents that were written before the restore came to it: only a "
    "new, empty cluster can be restored; begin with another one";

static void go_on(struct mergers *mergers, const struct gather *gather);

/* ---- pages ---- */

struct page_request {
    uint64_t call;
    uint64_t rest; /* Of the page before; then of this one. */
    uint32_t shard, bytes_max, away;
    struct slice after;
};

static struct slice pack_page(struct mergers *mergers, const struct page_request *request,
                              struct backup_page *page)
{
    Holdfast__V1__ReadDocumentsResponse response = HOLDFAST__V1__READ_DOCUMENTS_RESPONSE__INIT;
    const struct merger *merger = &mergers->shards[request->shard];

    response.rows = (ProtobufCBinaryData){ page->rows.size, page->rows.data };
    response.last = page->last;
    response.reader = merger->replica != NULL ? merger->replica->actor : 0;
    response.members = merger->record.membership.count;
    response.members_away = request->away;
    response.rest = request->rest;
    return arena_pack(&mergers->arena, &response.base);
}

/* The rest of a large document, or what follows in the store. */
static err make_page(struct mergers *mergers, struct page_request *request,
                     struct document_context *context, struct backup_page *page)
{
    const struct rest_place place = { request->shard, request->rest, request->after };

    if (request->rest != 0 && mergers_rest_find(mergers, &place, page) != ERR_OK)
        return refuse(&mergers->arena, context->refusal, CODE(VERSION_CONFLICT), "rest",
                      "that document is kept no more as it was; read from the first page on");
    if (page->rows.size > 0)
        return ERR_OK;
    err e = backup_rows_read(context, request->after, request->bytes_max, page);
    if (e == ERR_OK && mergers_rest_keep(mergers, request->shard, page, &request->rest) != ERR_OK)
        e = document_unavailable(context,
                                 "backups read as many large documents of this member as it keeps");
    return e;
}

static void answer_page(struct mergers *mergers, struct page_request *request)
{
    struct backup_page page = { .last = true };
    struct refusal refusal = { 0 };
    struct document_context context =
        mergers_context(mergers, request->shard, (struct slice){ 0 }, &refusal);
    err e = ERR_OK;

    if (context.replica != NULL)
        e = make_page(mergers, request, &context, &page);
    if (page.left_out > 0)
        log_event(mergers->options.log, LOG_WARN, "documents.left_out_of_backup",
                  LOG_N("shard", request->shard), LOG_N("records", page.left_out));
    if (e == ERR_OK)
        mergers_answer(mergers, request->call, REPLY_OK, pack_page(mergers, request, &page));
    else
        mergers_refuse(mergers, request->call, &refusal);
    buf_deinit(&page.rows);
}

/* ---- what the members have ---- */

static void gather_free(struct gather *gather)
{
    mclock_deinit(&gather->wanted);
    buf_deinit(&gather->restores);
    free(gather);
}

/* ---- members that are away ---- */

static struct gather_absent *absent_find(struct mergers *mergers, uint64_t member)
{
    for (uint32_t i = 0; i < GATHER_ABSENT_MAX; i++) {
        if (mergers->absent[i].member == member)
            return &mergers->absent[i];
    }
    return NULL;
}

/* In place of the one that is known for the longest, if need be. */
static void absent_note(struct mergers *mergers, uint64_t member)
{
    struct gather_absent *place = absent_find(mergers, member);

    for (uint32_t i = 0; i < GATHER_ABSENT_MAX && place == NULL; i++) {
        if (mergers->absent[i].member == 0)
            place = &mergers->absent[i];
    }
    if (place == NULL) {
        place = &mergers->absent[0];
        for (uint32_t i = 1; i < GATHER_ABSENT_MAX; i++) {
            if (mergers->absent[i].until_ms < place->until_ms)
                place = &mergers->absent[i];
        }
    }
    *place = (struct gather_absent){ .member = member,
                                     .until_ms = loop_now_ms(mergers->options.loop) + ABSENT_MS,
                                     .since_wall_ms = loop_wall_ms() };
}

static void absent_note_all(struct mergers *mergers, const struct gather *gather)
{
    for (uint32_t i = 0; i < gather->count; i++) {
        if (!gather->asked[i].told && gather->asked[i].until_ms != 0)
            absent_note(mergers, gather->asked[i].member);
    }
}

static void absent_forget(struct mergers *mergers, uint64_t member)
{
    struct gather_absent *absent = absent_find(mergers, member);

    if (absent != NULL)
        absent->member = 0;
}

static uint32_t untold(const struct gather *gather)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < gather->count; i++)
        count += !gather->asked[i].told;
    return count;
}

static bool waits(const struct mergers *mergers, const struct gather *gather, uint64_t now_ms)
{
    const struct merger *merger = &mergers->shards[gather->shard];
    const struct merge_replica *replica = merger->replica;

    if (gather->restores.size > 0)
        return now_ms < gather->end_ms && !gather->spoiled &&
               (untold(gather) > 0 || !mergers_generation_begun(merger));
    for (uint32_t i = 0; i < gather->count; i++) {
        if (!gather->asked[i].told && now_ms < gather->asked[i].until_ms)
            return true;
    }
    return now_ms < gather->end_ms && gather->wanted.count > 0 &&
           (replica == NULL || replica->syncing ||
            !mclock_includes(&replica->clock, &gather->wanted));
}

/* Of those that are members still. */
static bool is_majority(const struct gather *gather)
{
    uint32_t members = 1, told = 1;

    for (uint32_t i = 0; i < gather->count; i++) {
        members += !gather->asked[i].departing;
        told += gather->asked[i].told && !gather->asked[i].departing;
    }
    return told >= members / 2 + 1;
}

static void answer_gather(struct mergers *mergers, const struct gather *gather)
{
    const struct merger *merger = &mergers->shards[gather->shard];
    const struct merge_replica *replica = merger->replica;
    struct page_request request = { .call = gather->call,
                                    .shard = gather->shard,
                                    .bytes_max = gather->bytes_max,
                                    .away = untold(gather) };

    arena_reset(&mergers->arena);
    if (gather->restores.size > 0)
        go_on(mergers, gather);
    else if (!is_majority(gather))
        mergers_refuse_unavailable(mergers, gather->call,
                                   "a majority of the shard's members is out of the owner's reach");
    else if (replica != NULL && replica->syncing)
        mergers_refuse_unavailable(mergers, gather->call,
                                   "this member takes in what it lacks first");
    else if (gather->wanted.count > 0 &&
             (replica == NULL || !mclock_includes(&replica->clock, &gather->wanted)))
        mergers_refuse_unavailable(mergers, gather->call,
                                   "the owner still takes in what other members have");
    else
        answer_page(mergers, &request);
}

static void look(struct mergers *mergers)
{
    uint64_t now_ms = loop_now_ms(mergers->options.loop);

    for (struct gather **at = &mergers->gathers; *at != NULL;) {
        struct gather *gather = *at;

        if (waits(mergers, gather, now_ms)) {
            at = &gather->next;
            continue;
        }
        *at = gather->next;
        if (gather->restores.size == 0)
            absent_note_all(mergers, gather);
        answer_gather(mergers, gather);
        gather_free(gather);
    }
    if (mergers->gathers == NULL)
        loop_timer_stop(&mergers->gather_timer);
}

static uint64_t until_ms(struct mergers *mergers, uint32_t shard, uint64_t member)
{
    struct merge_replica *replica = mergers->shards[shard].replica;
    const struct merge_peer *peer = replica != NULL ? merge_peer_find(replica, member) : NULL;
    const struct gather_absent *absent = absent_find(mergers, member);
    uint64_t now_ms = loop_now_ms(mergers->options.loop);
    bool heard = peer != NULL && loop_wall_ms() - peer->heard_ms <= MERGE_HEARD_MS_MAX;
    bool is_back = heard && absent != NULL && peer->heard_ms > absent->since_wall_ms;

    if (absent != NULL && now_ms < absent->until_ms && !is_back)
        return 0;
    return now_ms + (heard ? GATHER_MS_MAX : GATHER_MS_UNHEARD);
}

static void send_ask(struct mergers *mergers, const struct gather *gather, uint64_t member)
{
    struct buf bytes = { 0 };

    buf_put_u8(&bytes, ASK);
    buf_put_u32(&bytes, gather->shard);
    buf_put_u64(&bytes, gather->number);
    mergers->options.send(mergers->options.user, member, buf_slice(&bytes));
    buf_deinit(&bytes);
}

/* One whose program knows no documents has none. */
static void ask(struct mergers *mergers, struct gather *gather, uint64_t member, bool departing)
{
    const struct mergers_options *options = &mergers->options;

    for (uint32_t i = 0; i < gather->count; i++) {
        if (gather->asked[i].member == member)
            return;
    }
    if (member == options->self)
        return;
    gather->asked[gather->count++] = (struct asked){
        .member = member,
        .told = options->takes != NULL && !options->takes(options->user, member),
        .departing = departing,
        .until_ms = until_ms(mergers, gather->shard, member),
    };
    send_ask(mergers, gather, member);
}

/* Those whose logs had not come to the restore. */
static void ask_again(struct mergers *mergers)
{
    for (const struct gather *at = mergers->gathers; at != NULL; at = at->next) {
        for (uint32_t i = 0; i < at->count && at->restores.size > 0; i++) {
            if (!at->asked[i].told)
                send_ask(mergers, at, at->asked[i].member);
        }
    }
}

static uint32_t count_gathers(const struct mergers *mergers)
{
    uint32_t count = 0;

    for (const struct gather *at = mergers->gathers; at != NULL; at = at->next)
        count++;
    return count;
}

/* Of a backup, unless a restore's request is given. */
static void begin_gather(struct mergers *mergers, const struct page_request *request,
                         struct slice restores)
{
    const struct merger *merger = &mergers->shards[request->shard];
    const struct membership *m = &merger->record.membership;
    struct gather *gather;

    if (count_gathers(mergers) >= GATHERS_MAX) {
        mergers_refuse(mergers, request->call,
                       &(struct refusal){ .code = CODE(THROTTLED),
                                          .message = "too many backups and restores wait here",
                                          .retry_after_ms = 200 });
        return;
    }
    gather = mem_zalloc(sizeof *gather);
    gather->call = request->call;
    gather->number = ++mergers->gather_last;
    gather->shard = request->shard;
    gather->bytes_max = request->bytes_max;
    gather->end_ms = loop_now_ms(mergers->options.loop) + GATHER_MS_MAX;
    for (uint32_t i = 0; i < m->count; i++)
        ask(mergers, gather, m->members[i], false);
    for (uint32_t i = 0; i < m->new_count; i++)
        ask(mergers, gather, m->new_members[i], false);
    for (uint32_t i = 0; i < merger->members.departing_count && restores.size == 0; i++)
        ask(mergers, gather, merger->members.departing[i], true);
    buf_append(&gather->restores, restores.data, restores.size);
    gather->next = mergers->gathers;
    mergers->gathers = gather;
    if (!loop_timer_is_running(&mergers->gather_timer))
        loop_timer_start_repeating(&mergers->gather_timer, LOOK_MS);
    look(mergers);
}

/* ---- messages ---- */

/* The generation of a member that has no replica, on its disk, whenever it became one. */
static void keep_generation(struct mergers *mergers, uint32_t shard)
{
    const struct merger *merger = &mergers->shards[shard];

    mergers_generation_follow(mergers, shard);
    if (merger->replica == NULL && !mergers_generation_begun(merger))
        mergers_disk_members(mergers, shard);
}

static err take_ask(struct mergers *mergers, uint64_t from, uint32_t shard, uint64_t number)
{
    const struct merger *merger = &mergers->shards[shard];
    struct mclock none = { 0 };
    struct buf bytes = { 0 };

    if (mergers_is_member(mergers, shard))
        keep_generation(mergers, shard);
    bool has = merger->known && !merger->spoiled && mergers_generation_begun(merger) &&
               (merger->replica == NULL || (merger->started && !merger->replica->syncing));

    buf_put_u8(&bytes, TELL);
    buf_put_u32(&bytes, shard);
    buf_put_u64(&bytes, number);
    buf_put_u64(&bytes, merger->spoiled ? SPOILED : mergers_generation_of(merger));
    buf_put_u8(&bytes, has);
    mclock_encode(merger->replica != NULL ? &merger->replica->clock : &none, &bytes);
    mergers->options.send(mergers->options.user, from, buf_slice(&bytes));
    buf_deinit(&bytes);
    return ERR_OK;
}

static struct gather *find(const struct mergers *mergers, uint64_t number)
{
    struct gather *at = mergers->gathers;

    while (at != NULL && at->number != number)
        at = at->next;
    return at;
}

static void take_clock(struct gather *gather, uint64_t from, const struct mclock *clock)
{
    for (uint32_t i = 0; i < gather->count; i++) {
        struct asked *asked = &gather->asked[i];

        if (asked->member == from && !asked->told)
            asked->told = mclock_join(&gather->wanted, clock, MCLOCK_CLOSE_AGREED) == ERR_OK;
    }
}

static void take_told(const struct mergers *mergers, struct gather *gather, uint64_t from,
                      uint64_t generation, const struct mclock *clock)
{
    bool same = generation == mergers_generation_of(&mergers->shards[gather->shard]);

    if (same || (clock->count == 0 && gather->restores.size == 0))
        take_clock(gather, from, clock);
}

static err take_tell(struct mergers *mergers, uint64_t from, struct reader *reader, uint32_t shard)
{
    struct gather *gather = find(mergers, read_u64(reader));
    uint64_t generation = read_u64(reader);
    uint8_t has = read_u8(reader);
    struct mclock clock;

    absent_forget(mergers, from);
    if (reader->bad || has > 1 || mclock_decode(reader, &clock) != ERR_OK)
        return ERR_CORRUPT;
    err e = reader_finish(reader);

    if (e == ERR_OK && gather != NULL && gather->shard == shard) {
        gather->spoiled |= generation == SPOILED;
        if (has == 1)
            take_told(mergers, gather, from, generation, &clock);
    }
    mclock_deinit(&clock);
    if (e == ERR_OK)
        look(mergers);
    return e == ERR_OK ? ERR_OK : ERR_CORRUPT;
}

err mergers_backup_message(struct mergers *mergers, uint64_t from, struct slice message)
{
    struct reader reader = reader_from(message);
    uint8_t kind = read_u8(&reader);

    if (reader.bad || (kind != ASK && kind != TELL))
        return ERR_NOT_FOUND;
    uint32_t shard = read_u32(&reader);

    if (reader.bad || shard >= mergers->options.shard_count)
        return ERR_CORRUPT;
    if (kind == TELL)
        return take_tell(mergers, from, &reader, shard);
    uint64_t number = read_u64(&reader);

    return reader_finish(&reader) == ERR_OK ? take_ask(mergers, from, shard, number) : ERR_CORRUPT;
}

void mergers_backup_cancel(struct mergers *mergers, uint64_t call)
{
    for (struct gather **at = &mergers->gathers; *at != NULL; at = &(*at)->next) {
        struct gather *gather = *at;

        if (gather->call != call)
            continue;
        *at = gather->next;
        gather_free(gather);
        return;
    }
}

static void on_timer(void *user)
{
    ask_again(user);
    look(user);
}

void mergers_backup_init(struct mergers *mergers)
{
    loop_timer_init(&mergers->gather_timer, mergers->options.loop, on_timer, mergers);
}

void mergers_backup_deinit(struct mergers *mergers)
{
    loop_timer_stop(&mergers->gather_timer);
    while (mergers->gathers != NULL)
        mergers_backup_cancel(mergers, mergers->gathers->call);
}

/* ---- calls ---- */

bool mergers_backup_has(uint32_t method)
{
    return method == METHOD_READ_DOCUMENTS || method == METHOD_RESTORE_DOCUMENTS;
}

static void read_documents(struct mergers *mergers, const struct mergers_request *request,
                           const Holdfast__V1__ReadDocumentsRequest *asked)
{
    const struct merger *merger = &mergers->shards[request->shard];
    uint64_t reader = merger->replica != NULL ? merger->replica->actor : 0;
    const char *bars = mergers_generation_bars(mergers, request->shard);
    struct page_request page = {
        .call = request->call,
        .rest = asked->rest,
        .shard = request->shard,
        .bytes_max = asked->bytes_max > 0 ? asked->bytes_max : BACKUP_ROWS_BYTES_MAX,
        .after = { asked->after.data, asked->after.len },
    };
    struct refusal refusal = { 0 };

    if (asked->bytes_max > BACKUP_ROWS_BYTES_MAX) {
        (void)refuse_number(&mergers->arena, &refusal, "bytes_max", "at most 524288",
                            asked->bytes_max);
        mergers_refuse(mergers, request->call, &refusal);
    } else if (bars != NULL) {
        mergers_refuse_unavailable(mergers, request->call, bars);
    } else if (asked->reader == 0 && asked->after.len == 0) {
        begin_gather(mergers, &page, (struct slice){ 0 });
    } else if (asked->reader != reader || (merger->replica != NULL && merger->replica->syncing)) {
        refuse_with(mergers, request->call, CODE(VERSION_CONFLICT),
                    "another process of the shard's members gave the first page");
    } else {
        answer_page(mergers, &page);
    }
}

/* False: refused. */
static bool check_restore(struct mergers *mergers, const struct mergers_request *request,
                          const Holdfast__V1__RestoreDocumentsRequest *asked)
{
    const struct merger *merger = &mergers->shards[request->shard];
    struct refusal refusal = { 0 };
    struct hash128 id;

    if (asked->restore_id.len != sizeof id.bytes || asked->rows.len > PART_BYTES_MAX) {
        bool of_id = asked->restore_id.len != sizeof id.bytes;

        (void)refuse_number(&mergers->arena, &refusal, of_id ? "restore_id" : "rows",
                            of_id ? "16 bytes" : "at most 1800000 bytes",
                            (int64_t)(of_id ? asked->restore_id.len : asked->rows.len));
        mergers_refuse(mergers, request->call, &refusal);
        return false;
    }
    memcpy(id.bytes, asked->restore_id.data, sizeof id.bytes);
    uint64_t generation = mergers_generation_of(merger);

    if (merger->spoiled) {
        refuse_with(mergers, request->call, CODE(VERSION_CONFLICT), spoiled_why);
        return false;
    }
    if (generation == shard_views_restore_generation(id) && merger->restoring)
        return true;
    if (generation == MERGERS_GENERATION_FIRST && !merger->restoring)
        mergers_refuse_unavailable(mergers, request->call,
                                   "this member has not read of its shard's restore yet: "
                                   "BeginRestore comes first");
    else
        refuse_with(mergers, request->call, CODE(VERSION_CONFLICT),
                    "the shard is not being restored from this backup");
    return false;
}

static void restore_documents(struct mergers *mergers, const struct mergers_request *request,
                              const Holdfast__V1__RestoreDocumentsRequest *asked)
{
    Holdfast__V1__RestoreDocumentsResponse response =
        HOLDFAST__V1__RESTORE_DOCUMENTS_RESPONSE__INIT;
    struct refusal refusal = { 0 };

    if (asked->first == 0 && asked->rows.len == 0) {
        response.whole = true;
        mergers_answer(mergers, request->call, REPLY_OK,
                       arena_pack(&mergers->arena, &response.base));
        return;
    }
    struct merge_replica *replica = mergers->need(mergers, request->shard);

    CHECK(replica != NULL);
    mergers_generation_follow(mergers, request->shard);
    if (replica->syncing) {
        mergers_refuse_unavailable(mergers, request->call,
                                   "this member takes in what it lacks first");
        return;
    }
    struct document_context context =
        mergers_context(mergers, request->shard, (struct slice){ 0 }, &refusal);
    const struct backup_part part = {
        .actor = merge_actor_make(0, replica->options.generation),
        .first = asked->first,
        .rows = { asked->rows.data, asked->rows.len },
    };

    if (backup_rows_put(&context, &part, &response.next) != ERR_OK) {
        mergers_refuse(mergers, request->call, &refusal);
    } else {
        response.whole = backup_cells_are_whole(replica, part.actor, response.next);
        mergers_answer(mergers, request->call, REPLY_OK,
                       arena_pack(&mergers->arena, &response.base));
    }
    mergers->drain(mergers, request->shard);
}

static const void *unpack(struct mergers *mergers, const struct mergers_request *request)
{
    bool reads = request->method == METHOD_READ_DOCUMENTS;
    const ProtobufCMessageDescriptor *type =
        reads ? &holdfast__v1__read_documents_request__descriptor
              : &holdfast__v1__restore_documents_request__descriptor;
    const void *message = arena_unpack(&mergers->arena, type, request->bytes);
    struct refusal refusal = { 0 };

    if (message == NULL) {
        (void)refuse_invalid(&mergers->arena, &refusal, "", "a message of its type", "");
        mergers_refuse(mergers, request->call, &refusal);
    }
    return message;
}

void mergers_backup_call(struct mergers *mergers, const struct mergers_request *request)
{
    const void *message = unpack(mergers, request);

    if (message == NULL)
        return;
    if (request->method == METHOD_READ_DOCUMENTS) {
        read_documents(mergers, request, message);
        return;
    }
    const Holdfast__V1__RestoreDocumentsRequest *asked = message;

    keep_generation(mergers, request->shard);
    if (!check_restore(mergers, request, asked))
        return;
    if (asked->first == 0)
        begin_gather(mergers,
                     &(struct page_request){ .call = request->call, .shard = request->shard },
                     request->bytes);
    else
        restore_documents(mergers, request, asked);
}

static void go_on(struct mergers *mergers, const struct gather *gather)
{
    const struct merger *merger = &mergers->shards[gather->shard];
    const struct mergers_request request = { .shard = gather->shard,
                                             .method = METHOD_RESTORE_DOCUMENTS,
                                             .call = gather->call,
                                             .bytes = buf_slice(&gather->restores) };

    if (gather->spoiled) {
        refuse_with(mergers, gather->call, CODE(VERSION_CONFLICT), spoiled_why);
        return;
    }
    if (untold(gather) > 0 || !mergers_generation_begun(merger)) {
        mergers_refuse_unavailable(mergers, gather->call,
                                   "a member of the shard has not begun the restore yet: all of "
                                   "its nodes have to be up");
        return;
    }
    const Holdfast__V1__RestoreDocumentsRequest *asked = unpack(mergers, &request);

    mergers_generation_follow(mergers, gather->shard);
    if (!mergers_is_member(mergers, gather->shard))
        mergers_refuse_unavailable(mergers, gather->call, "this node left the shard meanwhile");
    else if (check_restore(mergers, &request, asked))
        restore_documents(mergers, &request, asked);
}
