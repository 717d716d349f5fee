#include "node/io/report/node_ready.h"

#include <stdio.h>
#include <string.h>

static bool is_member(const struct membership *membership, uint64_t self)
{
    for (uint32_t i = 0; i < membership->count; i++) {
        if (membership->members[i] == self)
            return true;
    }
    return false;
}

bool node_ready_view(const struct shard_view *view, uint64_t self,
                     char ret_reason[NODE_READY_TEXT_BYTES])
{
    if (view->role == REP_DAMAGED || !is_member(&view->membership, self))
        return true;
    if (view->owner == self) {
        if (!view->serving)
            snprintf(ret_reason, NODE_READY_TEXT_BYTES, "shard %u is about to be served",
                     view->shard);
        else if (!view->open)
            snprintf(ret_reason, NODE_READY_TEXT_BYTES, "shard %u waits for its first policy",
                     view->shard);
        return view->open;
    }
    if (view->wants_snapshot) {
        snprintf(ret_reason, NODE_READY_TEXT_BYTES, "shard %u waits for a snapshot", view->shard);
        return false;
    }
    if (!view->follows) {
        snprintf(ret_reason, NODE_READY_TEXT_BYTES, "shard %u does not follow its owner yet",
                 view->shard);
        return false;
    }
    if (view->owner_commit_index <= view->applied_index + NODE_READY_LAG_MAX)
        return true;
    snprintf(ret_reason, NODE_READY_TEXT_BYTES, "shard %u is %llu entries behind", view->shard,
             (unsigned long long)(view->owner_commit_index - view->applied_index));
    return false;
}

struct survey {
    uint64_t self;
    uint32_t behind;
    char first[NODE_READY_TEXT_BYTES];
};

static void ask(void *user, const struct shard_view *view)
{
    struct survey *survey = user;
    char reason[NODE_READY_TEXT_BYTES];

    if (node_ready_view(view, survey->self, reason))
        return;
    if (survey->behind++ == 0)
        memcpy(survey->first, reason, sizeof survey->first);
}

bool node_ready(struct shard_views *views, uint64_t self, char ret_reason[NODE_READY_TEXT_BYTES])
{
    struct survey survey = { .self = self };

    shard_views_visit(views, ask, &survey);
    if (survey.behind > 1)
        snprintf(ret_reason, NODE_READY_TEXT_BYTES, "catching up: %.80s, and %u more", survey.first,
                 survey.behind - 1);
    else if (survey.behind == 1)
        snprintf(ret_reason, NODE_READY_TEXT_BYTES, "catching up: %.80s", survey.first);
    return survey.behind == 0;
}
