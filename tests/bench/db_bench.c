/*
 * db_bench DIRECTORY [GRANTS [PLAYERS]]: what RocksDB takes for the rows of grants with an item,
 * checkpoint after checkpoint, as one node of a cluster writes them under batches: player, ledger
 * entry, outcome, item, step of history. No limit of rate, so that work is measured, not waiting.
 * "merged" is what it still did when no more came.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "node/store/db.h"
#include "runtime/base/check.h"

#define SHARDS         64u
#define GRANTS_A_WRITE 2900u /* Between two checkpoints of a shard, under batches. */
#define ROWS_A_GRANT   5u
#define WINDOW_GRANTS  (SHARDS * GRANTS_A_WRITE * 2u)
#define KEY_BYTES_MAX  48u
#define SAMPLE_US      100000u
#define MIB            (1024.0 * 1024.0)

/* Bytes of values, half of them noise: LZ4 halves what nodes write. */
enum {
    PLAYER_BYTES = 120,
    LEDGER_BYTES = 150,
    OUTCOME_BYTES = 110,
    ITEM_BYTES = 90,
    STEP_BYTES = 70,
};

struct bench {
    struct db *db;
    struct state_write writes[GRANTS_A_WRITE * ROWS_A_GRANT];
    uint8_t keys[GRANTS_A_WRITE * ROWS_A_GRANT][KEY_BYTES_MAX];
    uint32_t count;
    uint32_t players; /* Of a shard. */
    uint64_t random, serial;
};

struct usage {
    uint64_t cpu_ns;
    uint64_t written_bytes;
};

static uint64_t clock_ns(clockid_t id)
{
    struct timespec now;

    CHECK(clock_gettime(id, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t next_random(struct bench *bench)
{
    bench->random ^= bench->random << 13;
    bench->random ^= bench->random >> 7;
    bench->random ^= bench->random << 17;
    return bench->random;
}

static struct usage usage_now(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    char line[128];
    unsigned long long bytes = 0;

    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "write_bytes: %llu", &bytes);
    fclose(file);
    return (struct usage){ clock_ns(CLOCK_PROCESS_CPUTIME_ID), bytes };
}

/* ---- rows --------------------------------------------------------------------------------- */

static void put(struct bench *bench, char table, const uint8_t *tail, uint32_t tail_bytes,
                uint32_t value_bytes)
{
    uint8_t *key = bench->keys[bench->count];
    uint8_t value[256] = { 0 };

    key[0] = (uint8_t)table;
    memcpy(key + 1, tail, tail_bytes);
    for (uint32_t i = 0; i < value_bytes / 2; i += 8) {
        uint64_t noise = next_random(bench);
        memcpy(value + i, &noise, sizeof noise);
    }
    bench->writes[bench->count++] = (struct state_write){
        .key = { key, 1 + tail_bytes },
        .value = blob_new((struct slice){ value, value_bytes }),
    };
}

static void put_u64_be(uint8_t *to, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        to[i] = (uint8_t)value;
}

/* "player:<shard and number>" and a zero. */
static uint32_t put_entity(uint8_t *to, uint32_t shard, uint32_t player)
{
    return (uint32_t)snprintf((char *)to, 24, "player:%08u", player * SHARDS + shard) + 1;
}

static void put_grant(struct bench *bench, uint32_t shard, uint32_t player, bool player_too)
{
    uint8_t tail[KEY_BYTES_MAX];
    uint32_t entity_bytes = put_entity(tail, shard, player);
    uint64_t serial = ++bench->serial;

    if (player_too)
        put(bench, TABLE_PLAYER, tail, entity_bytes - 1, PLAYER_BYTES);
    put_u64_be(tail + entity_bytes, serial);
    put(bench, TABLE_LEDGER, tail, entity_bytes + 8, LEDGER_BYTES);
    put_u64_be(tail + entity_bytes, serial);
    put_u64_be(tail + entity_bytes + 8, next_random(bench));
    put(bench, TABLE_ITEM, tail, entity_bytes + 16, ITEM_BYTES);

    put_u64_be(tail, serial);
    put_u64_be(tail + 8, next_random(bench));
    put(bench, TABLE_HISTORY, tail, 20, STEP_BYTES);
    (void)put_entity(tail + 16, shard, player);
    put(bench, TABLE_OPERATION, tail, 16 + entity_bytes - 1, OUTCOME_BYTES);
}

static void write_shard(struct bench *bench, uint32_t shard)
{
    static const uint8_t meta[64];

    bench->count = 0;
    /* Some players have several grants; their rows are written once. */
    for (uint32_t i = 0; i < GRANTS_A_WRITE; i++) {
        uint32_t player = (uint32_t)(next_random(bench) % bench->players);
        put_grant(bench, shard, player, i < bench->players);
    }
    struct db_checkpoint checkpoint = {
        .shard = shard,
        .writes = bench->writes,
        .write_count = bench->count,
        .meta_row = { meta, sizeof meta },
    };
    CHECK(db_checkpoint_write(bench->db, &checkpoint) == ERR_OK);
    for (uint32_t i = 0; i < bench->count; i++)
        blob_unref(bench->writes[i].value);
}

/* ---- figures ------------------------------------------------------------------------------ */

static void report(struct bench *bench, const char *what, struct usage before, double grants,
                   uint64_t took_ns)
{
    struct usage now = usage_now();
    struct db_stats stats;

    db_stats_get(bench->db, &stats);
    printf("%-10s %6.2f us of processor time and %5.0f bytes on disk a grant, %5.1f s, "
           "%4llu files, %6.0f MiB\n",
           what, (double)(now.cpu_ns - before.cpu_ns) / 1e3 / grants,
           (double)(now.written_bytes - before.written_bytes) / grants, (double)took_ns / 1e9,
           (unsigned long long)stats.files, (double)stats.live_bytes / MIB);
    fflush(stdout);
}

static bool is_merging(struct bench *bench)
{
    return db_property(bench->db, "rocksdb.num-running-compactions") > 0 ||
           db_property(bench->db, "rocksdb.num-running-flushes") > 0 ||
           db_property(bench->db, "rocksdb.compaction-pending") > 0;
}

static void wait_for_merges(struct bench *bench)
{
    for (int quiet = 0; quiet < 5; quiet = is_merging(bench) ? 0 : quiet + 1)
        usleep(SAMPLE_US);
}

static void run(struct bench *bench, uint64_t grants)
{
    struct usage first = usage_now();
    struct usage before = first;
    uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t window_ns = began_ns;
    uint64_t reported = 0;
    uint64_t done = 0;
    uint32_t shard = 0;

    while (done < grants) {
        write_shard(bench, shard++ % SHARDS);
        done += GRANTS_A_WRITE;
        if (shard % SHARDS == 0)
            CHECK(db_flush(bench->db) == ERR_OK);
        if (done - reported < WINDOW_GRANTS)
            continue;
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        report(bench, "window", before, (double)(done - reported), now_ns - window_ns);
        before = usage_now();
        window_ns = now_ns;
        reported = done;
    }
    before = usage_now();
    window_ns = clock_ns(CLOCK_MONOTONIC);
    wait_for_merges(bench);
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
    report(bench, "merged", before, (double)done, end_ns - window_ns);
    report(bench, "all", first, (double)done, end_ns - began_ns);
}

int main(int argc, char **argv)
{
    struct db_config config = db_config_default();
    struct bench *bench = mem_zalloc(sizeof *bench);
    char text[DB_TEXT_BYTES];

    if (argc < 2) {
        fprintf(stderr, "usage: db_bench DIRECTORY [GRANTS [PLAYERS]]\n");
        return 2;
    }
    uint64_t grants = argc > 2 ? strtoull(argv[2], NULL, 10) : 3600000;
    uint64_t players = argc > 3 ? strtoull(argv[3], NULL, 10) : 100000;
    bench->random = 1;
    bench->players = (uint32_t)(players / SHARDS) + 1;
    config.directory = argv[1];
    config.rate_bytes_per_s = 0;
    if (db_open(&config, &bench->db, text) != ERR_OK) {
        fprintf(stderr, "db_bench: %s\n", text);
        return 1;
    }
    run(bench, grants);
    db_close(bench->db);
    free(bench);
    return 0;
}
