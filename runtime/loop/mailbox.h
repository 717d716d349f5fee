/*
 * mailbox: hands work from any thread to the thread of a loop, lock-free and without allocation:
 * the message embeds a mailbox_node. Many senders, one receiver. The first message into an empty
 * mailbox wakes the loop, so a burst costs one wake-up (DESIGN section 9).
 *
 * Messages of one sender arrive in the order sent. The mailbox has no limit of its own: a
 * sender must have a bounded number of messages (one node per operation in flight).
 */
#ifndef RUNTIME_LOOP_MAILBOX_H
#define RUNTIME_LOOP_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

struct loop;

struct mailbox_node {
    struct mailbox_node *next;
};

struct mailbox {
    _Atomic(struct mailbox_node *) head; /* Newest first. */
    struct loop *loop;
    void (*fn)(void *user, struct mailbox_node *node);
    void *user;
    struct mailbox *next_in_loop;
};

/* On the loop's thread, or before it runs. fn gets every message, on the loop's thread, and from
 * then on owns it; it may free it or send it again. */
void mailbox_init(struct mailbox *mailbox, struct loop *loop,
                  void (*fn)(void *user, struct mailbox_node *node), void *user);
/* On the loop's thread, when no sender is left. Messages not yet received are dropped unseen;
 * call mailbox_drain first if they own memory. Never from fn. */
void mailbox_deinit(struct mailbox *mailbox);
/* Any thread. The node must stay valid until fn has it. Never blocks. */
void mailbox_push(struct mailbox *mailbox, struct mailbox_node *node);
/* Several at once, linked by `next` from the newest to the oldest; received oldest first. */
void mailbox_push_list(struct mailbox *mailbox, struct mailbox_node *newest,
                       struct mailbox_node *oldest);
/* Receives now what has arrived; on the loop's thread. Returns whether there was any. */
bool mailbox_drain(struct mailbox *mailbox);

#endif
