#include "tests/chaos/check/player_model.h"

#include <string.h>

#define DEED_NAME(deed, name) name,
static const char *const names[] = { DEED_TABLE(DEED_NAME) };
#undef DEED_NAME

const char *deed_name(enum deed deed)
{
    return deed < DEED_COUNT ? names[deed] : "?";
}

bool deed_find(const char *name, enum deed *ret_deed)
{
    for (int deed = 0; deed < DEED_COUNT; deed++) {
        if (strcmp(names[deed], name) == 0) {
            *ret_deed = (enum deed)deed;
            return true;
        }
    }
    return false;
}

static bool holds(const struct player_state *state, uint64_t fence)
{
    return state->held && state->fence == fence;
}

bool player_take(struct player_state *state, int64_t gold)
{
    if (state->gold < gold)
        return false;
    state->gold -= gold;
    return true;
}

static bool document_saved(struct player_state *state, const struct deed_done *done)
{
    if (done->fence != 0 && !holds(state, done->fence))
        return false;
    if (done->document != 0) {
        state->document = done->document;
        state->version++;
    }
    return true;
}

/* The fence of an open one is not known: only that it was higher. */
static bool joined(struct player_state *state, const struct deed_done *done)
{
    uint64_t fence = done->outcome == OUTCOME_OK ? done->fence : state->fence + 1;

    if (fence <= state->fence)
        return false;
    state->fence = fence;
    state->held = true;
    return true;
}

static bool take_place(struct player_state *state, const struct deed_done *done)
{
    switch (done->deed) {
    case DEED_GRANT:
    case DEED_CLAIM:
        return !__builtin_add_overflow(state->gold, done->gold, &state->gold);
    case DEED_SPEND:
    case DEED_SEND:
        return player_take(state, done->gold);
    case DEED_SAVE:
        return document_saved(state, done);
    case DEED_READ:
        return true;
    case DEED_JOIN:
        return joined(state, done);
    case DEED_LEAVE:
        if (!document_saved(state, done))
            return false;
        state->held = false;
        return true;
    default:
        return false;
    }
}

static bool refused(const struct player_state *state, const struct deed_done *done)
{
    switch (done->reason) {
    case REFUSED_FUNDS:
        return state->gold < done->gold;
    case REFUSED_SESSION_LOST:
        /* A session also ends when its server is taken for dead, which no caller's call does. */
    case REFUSED_OTHERWISE:
        return true;
    }
    return false;
}

static bool told_right(const struct player_state *after, const struct deed_done *done)
{
    if (done->has_gold_after && done->gold_after != after->gold)
        return false;
    if (done->has_document_after && done->document_after != after->document)
        return false;
    return !done->has_version_after || done->version_after == after->version;
}

bool player_step(const struct player_state *state, const struct deed_done *done,
                 struct player_state *ret_state)
{
    struct player_state after = *state;

    if (done->outcome == OUTCOME_REFUSED) {
        if (!refused(state, done))
            return false;
    } else {
        if (!take_place(&after, done))
            return false;
        if (done->outcome == OUTCOME_OK && !told_right(&after, done))
            return false;
    }
    *ret_state = after;
    return true;
}
