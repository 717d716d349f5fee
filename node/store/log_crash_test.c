/*
 * SIGKILL under load: a child appends, and says through a pipe what was acknowledged; the parent
 * kills it at some point, recovers, and finds every acknowledged record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/store/log_fixture.h"
#include "runtime/base/check.h"

#define ROUNDS   12u
#define INFLIGHT 16u

/* What goes through the pipe for each durable request. */
struct ack {
    uint32_t shard;
    uint32_t promise;
    uint64_t index; /* Or the promise's epoch. */
};

struct slot {
    struct node_log_request request;
    struct rep_write writes[5];
    struct ack ack;
};

struct child {
    struct fixture *fixture;
    int pipe;
    sem_t free_slots;
    _Atomic(struct node_log_request *) finished;
};

static void on_done(struct node_log_client *client, struct node_log_request *first)
{
    struct child *child = client->user;

    while (first != NULL) {
        struct slot *slot = CONTAINER_OF(first, struct slot, request);
        struct node_log_request *next = first->next;

        CHECK(write(child->pipe, &slot->ack, sizeof slot->ack) == sizeof slot->ack);
        /* The entries leak: only the submitting thread may count them, and it is to be killed. */
        free(slot);
        CHECK(sem_post(&child->free_slots) == 0);
        first = next;
    }
}

static void submit_one(struct child *child, struct node_log_client *client, uint32_t turn)
{
    struct fixture *f = child->fixture;
    struct slot *slot = mem_zalloc(sizeof *slot);
    uint32_t shard = turn * 7 % FIXTURE_SHARDS;

    slot->request =
        (struct node_log_request){ .client = client, .shard = shard, .writes = slot->writes };
    slot->ack.shard = shard;
    if (turn % 29 == 0) {
        slot->ack.promise = 1;
        slot->ack.index = f->shards[shard].promise.epoch + 1;
        f->shards[shard].promise = (struct promise){ 1, slot->ack.index, 1 };
        slot->writes[0] =
            (struct rep_write){ .type = REP_WRITE_PROMISE, .promise = f->shards[shard].promise };
        slot->request.write_count = 1;
    } else {
        slot->request.write_count = 1 + turn % 5;
        for (uint32_t i = 0; i < slot->request.write_count; i++) {
            slot->writes[i].type = REP_WRITE_ENTRY;
            slot->writes[i].entry = fixture_entry(f, shard, 50 + turn % 900);
            fixture_note(f, shard, slot->writes[i].entry);
        }
        slot->ack.index = f->shards[shard].last_index;
    }
    node_log_submit_list(f->log, &slot->request, &slot->request);
}

/* Goes on from what recovery finds; checks that it hangs together with what was there before. */
static void adopt(struct fixture *f, uint32_t shard)
{
    struct fixture_shard *model = &f->shards[shard];
    struct rep_image image = { 0 };

    CHECK(node_log_recover_shard(f->log, shard, 0, &image) == ERR_OK);
    CHECK(image.entry_count >= model->last_index);
    CHECK(image.promise.epoch >= model->promise.epoch);
    for (uint64_t i = 1; i <= model->last_index; i++)
        CHECK(hash128_equal(image.entries[i - 1]->hash, model->hashes[i]));
    while (model->last_index < image.entry_count)
        fixture_note(f, shard, image.entries[model->last_index]);
    model->promise = image.promise;
    node_log_image_deinit(&image);
}

static void run_child(struct fixture *f, int pipe)
{
    struct child child = { .fixture = f, .pipe = pipe };
    struct node_log_client client = { .done = on_done, .user = &child };

    alarm(300);
    CHECK(sem_init(&child.free_slots, 0, INFLIGHT) == 0);
    fixture_open(f);
    for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++)
        adopt(f, shard);
    for (uint32_t turn = 1;; turn++) {
        while (sem_wait(&child.free_slots) != 0)
            ;
        submit_one(&child, &client, turn);
    }
}

/* Reads acknowledgements; kills the child after `kill_after` of them; reads the rest. */
static void read_acks(int pipe, pid_t child, uint32_t kill_after, struct ack *ret_highest)
{
    struct ack ack;
    uint32_t count = 0;

    while (read(pipe, &ack, sizeof ack) == sizeof ack) {
        struct ack *highest = &ret_highest[ack.shard * 2 + ack.promise];

        if (ack.index > highest->index)
            *highest = ack;
        if (++count == kill_after)
            assert_int_equal(kill(child, SIGKILL), 0);
    }
    assert_true(count >= kill_after);
}

static void expect_acked(struct fixture *f, const struct ack *highest)
{
    fixture_open(f);
    for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++) {
        adopt(f, shard);
        assert_true(f->shards[shard].last_index >= highest[shard * 2].index);
        assert_true(f->shards[shard].promise.epoch >= highest[shard * 2 + 1].index);
    }
    assert_int_equal(f->errors_logged, 0);
    fixture_close(f);
}

static void every_acknowledged_record_survives_sigkill(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_init(&fixture);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct ack highest[FIXTURE_SHARDS * 2] = { 0 };
        int ends[2];
        int status;

        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            close(ends[0]);
            run_child(&fixture, ends[1]);
        }
        close(ends[1]);
        read_acks(ends[0], child, 20 + round * 137, highest);
        close(ends[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        expect_acked(&fixture, highest);
    }
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        every_acknowledged_record_survives_sigkill) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
