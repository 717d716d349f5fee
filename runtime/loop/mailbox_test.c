#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <pthread.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/mailbox.h"

#define SENDERS  4
#define MESSAGES 20000

struct message {
    struct mailbox_node node;
    int sender;
    int number;
};

struct receiver {
    struct loop *loop;
    struct mailbox mailbox;
    int next[SENDERS];
    int received;
    bool out_of_order;
};

struct sender {
    pthread_t thread;
    struct receiver *receiver;
    int sender;
};

static void receive(void *user, struct mailbox_node *node)
{
    struct receiver *r = user;
    struct message *message = CONTAINER_OF(node, struct message, node);

    if (message->number != r->next[message->sender]++)
        r->out_of_order = true;
    r->received++;
    free(message);
}

static void *send_all(void *user)
{
    struct sender *s = user;
    for (int i = 0; i < MESSAGES; i++) {
        struct message *message = mem_zalloc(sizeof *message);
        message->sender = s->sender;
        message->number = i;
        mailbox_push(&s->receiver->mailbox, &message->node);
    }
    return NULL;
}

static bool all_received(void *user)
{
    struct receiver *r = user;
    return r->received == SENDERS * MESSAGES;
}

static void every_message_of_many_threads_arrives_once_and_in_its_senders_order(void **state)
{
    (void)state;
    struct receiver r = { 0 };
    struct sender senders[SENDERS];
    assert_int_equal(loop_new(&r.loop), ERR_OK);
    mailbox_init(&r.mailbox, r.loop, receive, &r);
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){ .receiver = &r, .sender = i };
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
    }
    assert_true(loop_run_until(r.loop, all_received, &r, 30000));
    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_join(senders[i].thread, NULL), 0);
    assert_false(r.out_of_order);
    assert_false(mailbox_drain(&r.mailbox));
    mailbox_deinit(&r.mailbox);
    loop_free(r.loop);
}

static void *stop_loop(void *user)
{
    loop_stop(user);
    return NULL;
}

static void another_thread_can_stop_the_loop(void **state)
{
    (void)state;
    struct loop *loop;
    pthread_t thread;
    assert_int_equal(loop_new(&loop), ERR_OK);
    assert_int_equal(pthread_create(&thread, NULL, stop_loop, loop), 0);
    loop_run(loop);
    assert_int_equal(pthread_join(thread, NULL), 0);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_of_many_threads_arrives_once_and_in_its_senders_order),
        cmocka_unit_test(another_thread_can_stop_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
