/* A replica whose outcomes a majority found wrong gives its rows to no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "node/core/player/meta.h"
#include "node/core/shard/shard.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"

#define SELF   7u
#define BEHIND 8u
#define OWNER  9u

struct fixture {
    struct shard *shard;
    struct shard_out out;
    struct buf meta_row;
    uint64_t now_ms;
};

static void step(struct fixture *f, struct shard_event event)
{
    shard_out_clear(&f->out);
    event.now_ms = ++f->now_ms;
    event.unix_ms = 1790000000000u + f->now_ms;
    shard_step(f->shard, &event, &f->out);
}

static struct fixture *replica(bool differs, uint64_t halt_index)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    struct shard_limits limits = shard_limits_default();
    struct shard_image image = { .number = 3, .halt_index = halt_index };
    struct meta meta;

    meta_init(&meta);
    meta_encode(&meta, &f->meta_row);
    meta_deinit(&meta);
    image.rep = (struct rep_image){ .votes = true,
                                    .log_first_index = 1,
                                    .promise = { 1, 1, OWNER },
                                    .quarantined = halt_index != 0,
                                    .differs = differs };
    assert_int_equal(shard_new(SELF, &limits, node_handlers(), &image, &f->shard), ERR_OK);
    return f;
}

static void end(struct fixture *f)
{
    shard_out_deinit(&f->out);
    shard_free(f->shard);
    buf_deinit(&f->meta_row);
    free(f);
}

static void pull(struct fixture *f)
{
    struct rep_message m = { .type = REP_MSG_SNAPSHOT_PULL, .shard = 3 };

    step(f, (struct shard_event){ .type = SHARD_RECEIVE, .from = BEHIND, .message = &m });
}

static void give_page(struct fixture *f)
{
    step(f, (struct shard_event){ .type = SHARD_SNAPSHOT_PAGE,
                                  .complete = true,
                                  .request = buf_slice(&f->meta_row) });
}

/* The owner says that a majority came to other outcomes. */
static void quarantine(struct fixture *f)
{
    struct rep_message m = {
        .type = REP_MSG_APPEND, .shard = 3, .config = 1, .epoch = 1, .owner = OWNER, .refused = true
    };

    step(f, (struct shard_event){ .type = SHARD_RECEIVE, .from = OWNER, .message = &m });
    assert_true(f->out.rep.quarantined);
}

static const struct rep_message *told(const struct fixture *f)
{
    assert_int_equal(f->out.rep.send_count, 1);
    assert_int_equal(f->out.rep.sends[0].to, BEHIND);
    assert_int_equal(f->out.rep.sends[0].message.type, REP_MSG_SNAPSHOT_PART);
    return &f->out.rep.sends[0].message;
}

static void it_begins_no_snapshot(void **state)
{
    struct fixture *f = replica(true, 0);

    (void)state;
    pull(f);
    assert_false(f->out.snapshot.read);
    assert_true(told(f)->refused);
    end(f);
}

static void it_ends_the_snapshot_that_it_gives(void **state)
{
    struct fixture *f = replica(false, 0);

    (void)state;
    pull(f);
    assert_true(f->out.snapshot.read);
    quarantine(f);
    pull(f);
    assert_true(told(f)->refused);
    assert_false(f->out.snapshot.close); /* A thread reads it. */
    give_page(f);
    assert_true(told(f)->refused);
    assert_true(f->out.snapshot.close);
    pull(f);
    assert_false(f->out.snapshot.read);
    assert_true(told(f)->refused);
    end(f);
}

/* It is right as far as it goes. */
static void one_that_is_halted_gives_what_it_has(void **state)
{
    struct fixture *f = replica(false, 5);

    (void)state;
    pull(f);
    assert_true(f->out.snapshot.read);
    give_page(f);
    assert_false(told(f)->refused);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_no_snapshot),
        cmocka_unit_test(it_ends_the_snapshot_that_it_gives),
        cmocka_unit_test(one_that_is_halted_gives_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
