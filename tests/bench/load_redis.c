/*
 * load_redis: the same grants, transfers of an item, favourites, or settings, on Redis, in a closed
 * loop: one Lua script each (of settings, one HSET), --batch of them pipelined, then one WAIT for
 * the replica; epoll, one thread. Players are hashes "p:N" that exist; who transfers has a set
 * "i:N" of items, a mailbox "m:N" and a ledger "tl:N"; who favourites has a hash "f:N" of edges. A
 * target's count is in 64 parts, fields of the hashes "c:0" to "c:63", and its place in the sorted
 * set "top". A player's settings are the hash "d:N". Prints one line of JSON like loadgen's.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "load_favorite.h"
#include "load_grant.h"
#include "load_leaf.h"
#include "load_run.h"
#include "load_stock.h"
#include "runtime/base/check.h"

#define EVENTS_MAX      256
#define BATCH_MAX       256u
#define CALL_TIMEOUT_NS 10000000000u
#define SHA_SIZE        64
#define COUNT_PARTS     64u

struct run;
struct link;

/* Answers an integer for a new grant, a string for a repeated one. The item list of a profile is
 * kept at 384 bytes: the oldest item falls off. */
static const char grant_script[] =
    "local known = redis.call('GET', KEYS[2]) "
    "if known then return known end "
    "local balance = redis.call('HINCRBY', KEYS[1], 'gold', 1) "
    "if ARGV[1] ~= '' then "
    "  local items = redis.call('HGET', KEYS[1], 'items') .. ARGV[1] "
    "  redis.call('HSET', KEYS[1], 'items', string.sub(items, -384)) "
    "end "
    "redis.call('HINCRBY', KEYS[1], 'version', 1) "
    "redis.call('SET', KEYS[2], balance, 'EX', 86400) "
    "redis.call('RPUSH', KEYS[3], ARGV[2] .. ':1:' .. ARGV[1] .. ':' .. balance) "
    "return balance";

/* Answers 1 for a new transfer, a string for a repeated one. */
static const char transfer_script[] =
    "local known = redis.call('GET', KEYS[3]) "
    "if known then return known end "
    "if redis.call('SREM', KEYS[1], ARGV[1]) == 0 then return redis.error_reply('not held') end "
    "redis.call('RPUSH', KEYS[2], ARGV[1]) "
    "redis.call('SET', KEYS[3], '1', 'EX', 86400) "
    "redis.call('RPUSH', KEYS[4], ARGV[2] .. ':out:' .. ARGV[1] .. ':' .. KEYS[2]) "
    "redis.call('RPUSH', KEYS[5], ARGV[2] .. ':in:' .. ARGV[1] .. ':' .. KEYS[1]) "
    "return 1";

/* Answers an integer for a new edge, a string for one that stood. */
static const char favorite_script[] =
    "if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 'stood' end "
    "redis.call('HINCRBY', KEYS[2], ARGV[1], 1) "
    "redis.call('ZINCRBY', KEYS[3], 1, ARGV[1]) "
    "return 1";

struct link {
    redisContext *redis;
    uint64_t sent_ns;
    unsigned replies; /* Still to come: the grants', then WAIT's. */
    struct load_outcome outcome;
    struct load_history history;
    struct load_stock stock;
};

/* What one call sends. */
struct redis_op {
    const char *name;
    const char *script;
    unsigned batch_max;
    void (*append)(struct run *run, struct link *link);
};

struct run {
    struct load_options options;
    const struct redis_op *op;
    struct load_run counts;
    struct link *links;
    int epoll;
    char sha[SHA_SIZE];
};

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "load_redis: %s: %s\n", what, why);
    exit(1);
}

static void append_grant(struct run *run, struct link *link)
{
    struct load_grant grant = load_grant_next(&run->options, &link->history);
    char profile[32], operation[48], ledger[32], item[17] = "";
    const char *words[] = {
        "EVALSHA", run->sha, "3", profile, operation, ledger, item, grant.op_id
    };

    snprintf(profile, sizeof profile, "p:%u", grant.player);
    snprintf(operation, sizeof operation, "o:%s", grant.op_id);
    snprintf(ledger, sizeof ledger, "l:%u", grant.player);
    if (run->options.items > 0) /* The random half of the op_id. */
        snprintf(item, sizeof item, "%.16s", grant.op_id + strlen(grant.op_id) - 16);
    if (redisAppendCommandArgv(link->redis, (int)ARRAY_SIZE(words), words, NULL) != REDIS_OK)
        die("EVALSHA", link->redis->errstr);
}

static void append_mint(struct link *link)
{
    const char *words[2 + LOAD_STOCK_MINT] = { "SADD" };
    char key[32], ids[LOAD_STOCK_MINT][LOAD_ITEM_SIZE];

    snprintf(key, sizeof key, "i:%u", link->stock.minter);
    words[1] = key;
    for (unsigned i = 0; i < LOAD_STOCK_MINT; i++) {
        snprintf(ids[i], sizeof ids[i], "%016llx%016llx", (unsigned long long)load_random(),
                 (unsigned long long)load_random());
        words[2 + i] = ids[i];
        load_stock_add(&link->stock, ids[i]);
    }
    if (redisAppendCommandArgv(link->redis, (int)ARRAY_SIZE(words), words, NULL) != REDIS_OK)
        die("SADD", link->redis->errstr);
}

static void append_transfer(struct run *run, struct link *link)
{
    if (load_stock_mints(&link->stock, &run->options)) {
        append_mint(link);
        return;
    }
    struct load_item item = load_stock_take(&link->stock);
    unsigned to = load_stock_other(&run->options, item.player, 0);
    char held[32], mailbox[32], operation[48], from_ledger[32], to_ledger[32];
    char op_id[UUID_TEXT_SIZE];
    const char *words[] = { "EVALSHA", run->sha,    "5",       held,    mailbox,
                            operation, from_ledger, to_ledger, item.id, op_id };

    load_op_id(op_id);
    snprintf(held, sizeof held, "i:%u", item.player);
    snprintf(mailbox, sizeof mailbox, "m:%u", to);
    snprintf(operation, sizeof operation, "o:%s", op_id);
    snprintf(from_ledger, sizeof from_ledger, "tl:%u", item.player);
    snprintf(to_ledger, sizeof to_ledger, "tl:%u", to);
    if (redisAppendCommandArgv(link->redis, (int)ARRAY_SIZE(words), words, NULL) != REDIS_OK)
        die("EVALSHA", link->redis->errstr);
}

static void append_favorite(struct run *run, struct link *link)
{
    struct load_favorite favorite = load_favorite_next(&run->options);
    char edges[32], part[32], now_ms[32];
    const char *words[] = { "EVALSHA", run->sha, "3", edges, part, "top", favorite.target, now_ms };

    snprintf(edges, sizeof edges, "f:%u", favorite.player);
    snprintf(part, sizeof part, "c:%u", favorite.player % COUNT_PARTS);
    snprintf(now_ms, sizeof now_ms, "1:%llu", (unsigned long long)(clock_ns() / 1000000));
    if (redisAppendCommandArgv(link->redis, (int)ARRAY_SIZE(words), words, NULL) != REDIS_OK)
        die("EVALSHA", link->redis->errstr);
}

static void append_leaf(struct run *run, struct link *link)
{
    struct load_leaf leaf = load_leaf_next(&run->options);

    if (redisAppendCommand(link->redis, "HSET d:%u %s %u", leaf.player, leaf.name, leaf.value) !=
        REDIS_OK)
        die("HSET", link->redis->errstr);
}

static const struct redis_op redis_ops[] = {
    { "grant", grant_script, BATCH_MAX, append_grant },
    { "transfer", transfer_script, 1, append_transfer },
    { "favorite", favorite_script, BATCH_MAX, append_favorite },
    { "document", NULL, BATCH_MAX, append_leaf },
};

static void call(struct run *run, struct link *link)
{
    int written = 0;

    link->outcome = (struct load_outcome){ 0 };
    link->replies = run->options.batch + 1;
    for (unsigned i = 0; i < run->options.batch; i++)
        run->op->append(run, link);
    if (redisAppendCommand(link->redis, "WAIT 1 5000") != REDIS_OK)
        die("WAIT", link->redis->errstr);
    link->sent_ns = clock_ns();
    while (written == 0) {
        if (redisBufferWrite(link->redis, &written) != REDIS_OK)
            die("write", link->redis->errstr);
    }
}

static void take_reply(struct link *link, const redisReply *reply)
{
    struct load_outcome *outcome = &link->outcome;

    link->replies--;
    if (link->replies > 0) {
        if (reply->type == REDIS_REPLY_ERROR)
            outcome->failed++;
        else
            outcome->done++;
        outcome->duplicates += reply->type == REDIS_REPLY_STRING;
    } else if (reply->type != REDIS_REPLY_INTEGER || reply->integer < 1) {
        outcome->failed += outcome->done; /* The replica did not have them. */
        outcome->codes[LOAD_OTHER] = outcome->failed;
        outcome->done = outcome->duplicates = 0;
    }
    if (reply->type == REDIS_REPLY_ERROR)
        fprintf(stderr, "load_redis: %.200s\n", reply->str);
}

static void on_readable(struct run *run, struct link *link)
{
    void *reply = NULL;

    if (redisBufferRead(link->redis) != REDIS_OK)
        die("read", link->redis->errstr);
    while (link->replies > 0) {
        if (redisGetReplyFromReader(link->redis, &reply) != REDIS_OK)
            die("reply", link->redis->errstr);
        if (reply == NULL)
            return;
        take_reply(link, reply);
        freeReplyObject(reply);
    }
    if (link->stock.minting) /* Items made for transfers. */
        link->outcome.done = 0;
    load_run_count(&run->counts, link->sent_ns, &link->outcome);
    load_grant_answered(&link->history, link->outcome.failed == 0);
    if (run->counts.phase != LOAD_DRAIN)
        call(run, link);
}

static bool any_busy(const struct run *run)
{
    for (unsigned i = 0; i < run->options.connections; i++) {
        if (run->links[i].replies > 0)
            return true;
    }
    return false;
}

static void round_once(struct run *run)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(run->epoll, events, EVENTS_MAX, 100);

    for (int i = 0; i < count; i++)
        on_readable(run, events[i].data.ptr);
    load_run_advance(&run->counts, clock_ns());
}

static void load_script(struct run *run)
{
    redisReply *reply = redisCommand(run->links[0].redis, "SCRIPT LOAD %s", run->op->script);

    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        die("SCRIPT LOAD", reply != NULL ? reply->str : run->links[0].redis->errstr);
    snprintf(run->sha, sizeof run->sha, "%s", reply->str);
    freeReplyObject(reply);
}

static void start(struct run *run)
{
    const struct load_options *options = &run->options;

    run->epoll = epoll_create1(EPOLL_CLOEXEC);
    run->links = mem_zalloc(options->connections * sizeof *run->links);
    for (unsigned i = 0; i < options->connections; i++) {
        struct link *link = &run->links[i];
        link->redis = redisConnect(options->host, (int)options->port);
        if (link->redis == NULL || link->redis->err != 0)
            die("connect", link->redis != NULL ? link->redis->errstr : "no memory");
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = link };
        if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, link->redis->fd, &event) != 0)
            die("connect", "epoll_ctl");
    }
    if (run->op->script != NULL)
        load_script(run);
    load_run_start(&run->counts, options);
    for (unsigned i = 0; i < options->connections; i++)
        call(run, &run->links[i]);
}

int main(int argc, char **argv)
{
    static struct run run;

    load_options_parse(
        argc, argv,
        "load on Redis; operations:\n    grant\n    transfer\n    favorite\n    document\n",
        &run.options);
    for (size_t i = 0; i < ARRAY_SIZE(redis_ops); i++) {
        if (strcmp(run.options.op, redis_ops[i].name) == 0)
            run.op = &redis_ops[i];
    }
    if (run.op == NULL || run.options.batch > run.op->batch_max) {
        fprintf(stderr,
                "load_redis: --op is grant, favorite or document with a --batch of at most %u, or "
                "transfer with 1\n",
                BATCH_MAX);
        return 2;
    }
    start(&run);
    while (run.counts.phase != LOAD_DRAIN)
        round_once(&run);
    while (any_busy(&run) && clock_ns() < run.counts.end_ns + CALL_TIMEOUT_NS)
        round_once(&run);
    load_run_report(&run.counts, run.options.batch);
    printf("}\n");
    return 0;
}
