#include "tests/chaos/check/whole.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/check.h"

#define FINDING_BYTES_MAX 700

void finding_add(struct findings *findings, const char *format, ...)
{
    char text[FINDING_BYTES_MAX];
    va_list arguments;

    if (findings->count++ >= FINDINGS_TOLD_MAX)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    buf_printf(&findings->text, "%s\n", text);
}

void findings_deinit(struct findings *findings)
{
    buf_deinit(&findings->text);
}

/* ---- every coin is somewhere ---- */

/* Of a player: it must stand in the end, once. */
static void finals_complete(const struct history *history, struct findings *findings)
{
    uint32_t *lines = mem_zalloc(sizeof *lines * (history->players.count + 1));

    for (size_t i = 0; i < history->final_count; i++) {
        const struct history_final *final = &history->finals[i];
        if (lines[final->player] != 0)
            finding_add(findings, "line %u: the player %s stood in the end in line %u already",
                        final->line, history->players.texts[final->player], lines[final->player]);
        lines[final->player] = final->line;
    }
    for (size_t i = 0; i < history->players.count; i++) {
        if (lines[i] == 0)
            finding_add(findings, "the history does not say what the player %s held in the end",
                        history->players.texts[i]);
    }
    free(lines);
}

void whole_conservation(const struct history *history, struct findings *findings)
{
    int64_t least = 0, most = 0, found = 0;

    finals_complete(history, findings);
    for (size_t i = 0; i < history->call_count; i++) {
        const struct deed_done *done = &history->calls[i].timed.done;
        bool comes = done->deed == DEED_GRANT;
        if ((!comes && done->deed != DEED_SPEND) || done->outcome == OUTCOME_REFUSED)
            continue;
        int64_t change = comes ? done->gold : -done->gold;
        if (done->outcome == OUTCOME_OK || change < 0)
            least += change;
        if (done->outcome == OUTCOME_OK || change > 0)
            most += change;
    }
    for (size_t i = 0; i < history->final_count; i++)
        found += history->finals[i].gold + history->finals[i].mail_gold;
    if (found < least || found > most)
        finding_add(findings,
                    "gold: %" PRId64
                    " is held in the end; what was granted and spent leaves %" PRId64
                    " to %" PRId64,
                    found, least, most);
}

/* ---- mails ---- */

void whole_mails(const struct history *history, struct findings *findings)
{
    const struct history_call **sent = mem_zalloc(sizeof *sent * (history->mails.count + 1));
    const struct history_call **claimed = mem_zalloc(sizeof *claimed * (history->mails.count + 1));

    for (size_t i = 0; i < history->call_count; i++) {
        const struct history_call *call = &history->calls[i];
        const struct history_call **seen = call->timed.done.deed == DEED_SEND ? sent : claimed;
        if (call->mail == NAME_NONE || call->timed.done.outcome != OUTCOME_OK)
            continue;
        if (seen[call->mail] != NULL)
            finding_add(findings, "line %u: the mail %s was %s in line %u already", call->line,
                        history->mails.texts[call->mail], seen == sent ? "sent" : "claimed",
                        seen[call->mail]->line);
        seen[call->mail] = call;
    }
    for (size_t i = 0; i < history->mails.count; i++) {
        if (sent[i] != NULL && claimed[i] != NULL &&
            sent[i]->timed.done.gold != claimed[i]->timed.done.gold)
            finding_add(findings,
                        "line %u: the mail %s brought %" PRId64 " gold; line %u sent %" PRId64,
                        claimed[i]->line, history->mails.texts[i], claimed[i]->timed.done.gold,
                        sent[i]->line, sent[i]->timed.done.gold);
    }
    free(sent);
    free(claimed);
}

/* ---- replicas ---- */

static int by_shard(const void *a, const void *b)
{
    const struct history_replica *one = a, *other = b;

    if (one->shard != other->shard)
        return one->shard < other->shard ? -1 : 1;
    return one->line < other->line ? -1 : 1;
}

void whole_convergence(const struct history *history, struct findings *findings)
{
    size_t size = sizeof(struct history_replica) * (history->replica_count + 1);
    struct history_replica *replicas = mem_zalloc(size);

    if (history->replica_count == 0)
        finding_add(findings, "the history does not say how the replicas ended");
    for (size_t i = 0; i < history->replica_count; i++)
        replicas[i] = history->replicas[i];
    qsort(replicas, history->replica_count, sizeof *replicas, by_shard);
    for (size_t i = 0; i < history->replica_count; i++) {
        const struct history_replica *one = &replicas[i];
        bool first = i == 0 || replicas[i - 1].shard != one->shard;
        bool last = i + 1 == history->replica_count || replicas[i + 1].shard != one->shard;
        if (first && last)
            finding_add(findings, "line %u: shard %u has one replica", one->line, one->shard);
        if (!first && replicas[i - 1].digest != one->digest)
            finding_add(findings, "line %u: shard %u is %s on %s, and %s on %s", one->line,
                        one->shard, history->digests.texts[one->digest],
                        history->nodes.texts[one->node],
                        history->digests.texts[replicas[i - 1].digest],
                        history->nodes.texts[replicas[i - 1].node]);
    }
    free(replicas);
}

/* ---- order ---- */

/* The calls of one player, in the order of their times. */
struct player_calls {
    struct timed_deed *deeds;
    const struct history_call **calls;
    size_t count;
};

static int by_player(const void *a, const void *b)
{
    const struct history_call *one = *(const struct history_call *const *)a;
    const struct history_call *other = *(const struct history_call *const *)b;

    if (one->player != other->player)
        return one->player < other->player ? -1 : 1;
    if (one->timed.called_at != other->timed.called_at)
        return one->timed.called_at < other->timed.called_at ? -1 : 1;
    return one->line < other->line ? -1 : 1;
}

static void tell_deed(struct buf *text, const struct history_call *call)
{
    const struct deed_done *done = &call->timed.done;

    buf_printf(text, "%s (lines %u, %u)", deed_name(done->deed), call->line, call->answer_line);
    if (done->gold != 0)
        buf_printf(text, " of %" PRId64 " gold", done->gold);
    if (done->document != 0)
        buf_printf(text, " of document %" PRId64, done->document);
    if (done->fence != 0)
        buf_printf(text, " under fence %" PRIu64, done->fence);
    if (done->outcome == OUTCOME_REFUSED)
        buf_printf(text, ", refused");
    if (done->has_gold_after)
        buf_printf(text, ", told gold %" PRId64, done->gold_after);
    if (done->has_document_after)
        buf_printf(text, ", document %" PRId64, done->document_after);
    if (done->has_version_after)
        buf_printf(text, ", version %" PRIu64, done->version_after);
}

static void tell_failure(const struct history *history, const struct player_calls *player,
                         const struct linear_failure *failure, struct findings *findings)
{
    struct buf text = { 0 };

    buf_printf(
        &text,
        "player %s: no order explains what callers were told. The longest explains %zu of %zu "
        "operations, up to gold %" PRId64 ", document %" PRId64 ", version %" PRIu64
        ", fence %" PRIu64 "%s; ",
        history->players.texts[player->calls[0]->player], failure->placed, player->count,
        failure->state.gold, failure->state.document, failure->state.version, failure->state.fence,
        failure->state.held ? ", held" : "");
    if (failure->last != SIZE_MAX) {
        buf_printf(&text, "its last is ");
        tell_deed(&text, player->calls[failure->last]);
        buf_printf(&text, "; ");
    }
    buf_printf(&text, "what fits nowhere after it is ");
    tell_deed(&text, player->calls[failure->stuck]);
    buf_append(&text, "", 1);
    finding_add(findings, "%s", (const char *)text.data);
    buf_deinit(&text);
}

void whole_order(const struct history *history, struct findings *findings, size_t *ret_undecided)
{
    size_t count = history->call_count;
    const struct history_call **calls = mem_zalloc(sizeof *calls * (count + 1));
    struct timed_deed *deeds = mem_zalloc(sizeof *deeds * (count + 1));
    struct linear_failure failure;

    *ret_undecided = 0;
    for (size_t i = 0; i < count; i++)
        calls[i] = &history->calls[i];
    qsort(calls, count, sizeof *calls, by_player);
    for (size_t i = 0; i < count; i++)
        deeds[i] = calls[i]->timed;
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && calls[end]->player == calls[first]->player;)
            end++;
        struct player_calls player = { deeds + first, calls + first, end - first };
        enum verdict verdict = linear_check(player.deeds, player.count, &failure);
        if (verdict == VERDICT_BROKEN)
            tell_failure(history, &player, &failure, findings);
        *ret_undecided += verdict == VERDICT_UNDECIDED;
    }
    free(deeds);
    free(calls);
}
