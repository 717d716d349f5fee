#include "runtime/loop/mailbox.h"

#include "runtime/base/check.h"
#include "runtime/loop/loop_private.h"

void mailbox_init(struct mailbox *mailbox, struct loop *loop,
                  void (*fn)(void *user, struct mailbox_node *node), void *user)
{
    atomic_init(&mailbox->head, NULL);
    mailbox->loop = loop;
    mailbox->fn = fn;
    mailbox->user = user;
    mailbox->next_in_loop = loop->mailboxes;
    loop->mailboxes = mailbox;
}

void mailbox_deinit(struct mailbox *mailbox)
{
    struct mailbox **at = &mailbox->loop->mailboxes;

    while (*at != NULL && *at != mailbox)
        at = &(*at)->next_in_loop;
    CHECK(*at == mailbox);
    *at = mailbox->next_in_loop;
}

void mailbox_push(struct mailbox *mailbox, struct mailbox_node *node)
{
    mailbox_push_list(mailbox, node, node);
}

void mailbox_push_list(struct mailbox *mailbox, struct mailbox_node *newest,
                       struct mailbox_node *oldest)
{
    struct loop *loop = mailbox->loop;
    struct mailbox_node *before = atomic_load_explicit(&mailbox->head, memory_order_relaxed);

    /* No ABA: the receiver only ever takes the whole list. */
    do {
        oldest->next = before;
    } while (!atomic_compare_exchange_weak_explicit(&mailbox->head, &before, newest,
                                                    memory_order_release, memory_order_relaxed));
    if (before == NULL)
        uv_async_send(&loop->wake);
}

bool mailbox_drain(struct mailbox *mailbox)
{
    if (atomic_load_explicit(&mailbox->head, memory_order_relaxed) == NULL)
        return false;
    struct mailbox_node *newest =
        atomic_exchange_explicit(&mailbox->head, NULL, memory_order_acquire);
    struct mailbox_node *oldest = NULL;
    while (newest != NULL) {
        struct mailbox_node *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct mailbox_node *node = oldest;
        oldest = node->next;
        mailbox->fn(mailbox->user, node);
    }
    return true;
}
