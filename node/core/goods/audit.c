#include "node/core/goods/audit.h"

#include "node/core/codec/arena_proto.h"
#include "node/core/goods/row_totals.h"
#include "runtime/base/check.h"

/* Of a NOTE_SETTLED: u64 opened_cut, u64 decided_cut, u8 whether it was applied, the record. */
static void settled_told(struct auditor *auditor, struct slice note, int sign)
{
    struct reader reader = reader_from(note);
    uint64_t opened_cut = read_u64(&reader);
    uint64_t decided_cut = read_u64(&reader);
    bool applied = read_u8(&reader) != 0;
    struct slice record = read_raw(&reader, reader_left(&reader));

    CHECK(!reader.bad);
    for (uint32_t i = 0; i < CUTS_KEPT; i++) {
        struct cut *cut = &auditor->meta->cuts[i];
        if (cut->id == 0 || opened_cut >= cut->id)
            continue;
        if (sign < 0)
            cut->open++;
        else if (cut->open > 0) /* Rows that a person removed were counted, too. */
            cut->open--;
        if (applied && decided_cut < cut->id)
            (void)row_totals_record(&cut->totals, record, -sign);
    }
}

void audit_row(void *context, struct slice key, struct slice before, struct slice after)
{
    struct auditor *auditor = context;

    if (key.data[0] == TABLE_EVENT) {
        auditor->meta->events.count += after.size > 0;
        auditor->meta->events.written += after.size > 0;
        auditor->meta->events.count -= before.size > 0 && auditor->meta->events.count > 0;
    } else if (key.data[0] == TABLE_NOTE && key.data[1] == NOTE_SETTLED) {
        settled_told(auditor, before.size > 0 ? before : after, after.size > 0 ? 1 : -1);
    } else if (!row_totals_add(&auditor->meta->totals, &auditor->arena, key, before, after)) {
        auditor->meta->unread_rows++;
    }
    if (auditor->arena.total_bytes > 0)
        arena_reset(&auditor->arena);
}

static void take_cut(struct meta *meta, uint64_t cut)
{
    struct totals kept = meta->cuts[CUTS_KEPT - 1].totals;

    /* The oldest copy's memory becomes that of the newest. */
    for (uint32_t i = CUTS_KEPT - 1; i > 0; i--)
        meta->cuts[i] = meta->cuts[i - 1];
    meta->cuts[0] = (struct cut){ .id = cut, .open = meta->outbox_open, .totals = kept };
    totals_copy(&meta->cuts[0].totals, &meta->totals);
    meta->cut_id = cut;
}

void audit_cut(struct meta *meta, uint64_t cut)
{
    if (cut > meta->cut_id)
        take_cut(meta, cut);
}

void audit_settled(struct apply_context *context, const Holdfast__Internal__V1__OutboxRow *row,
                   const Holdfast__Internal__V1__ChannelResult *result)
{
    const uint8_t key[] = { TABLE_NOTE, NOTE_SETTLED };

    if (row->opened_cut >= context->meta->cut_id)
        return; /* It was open at no cut. */
    buf_clear(context->scratch);
    buf_put_u64(context->scratch, row->opened_cut);
    buf_put_u64(context->scratch, result->decided_cut);
    buf_put_u8(context->scratch,
               result->decision ==
                   HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_APPLIED);
    struct slice record = arena_pack(context->arena, &row->base);
    buf_append(context->scratch, record.data, record.size);
    state_note(context->state, (struct slice){ key, sizeof key }, buf_slice(context->scratch));
}

void audit_made(struct apply_context *context, const Holdfast__Internal__V1__TxnDelta *made)
{
    const uint8_t key[] = { TABLE_NOTE, NOTE_MADE };

    if (made->n_amounts + made->n_added + made->n_removed > 0)
        state_note(context->state, (struct slice){ key, sizeof key },
                   arena_pack(context->arena, &made->base));
}

static void tell(struct arena *arena, const struct cut *cut,
                 Holdfast__Internal__V1__CutTotals *ret_told)
{
    const struct totals *totals = &cut->totals;

    ret_told->cut = cut->id;
    ret_told->open = cut->open;
    ret_told->count = totals->count;
    ret_told->hashes = totals->hashes;
    ret_told->amounts =
        arena_messages(arena, &holdfast__v1__currency_amount__descriptor, totals->currency_count);
    for (uint32_t i = 0; i < totals->currency_count; i++) {
        if (totals->currencies[i].net == 0)
            continue;
        Holdfast__V1__CurrencyAmount *amount = ret_told->amounts[ret_told->n_amounts++];
        amount->currency = arena_text(arena, slice_from_text(totals->currencies[i].name));
        amount->amount = totals->currencies[i].net;
    }
}

static void tell_buckets(struct arena *arena, const struct cut *cut,
                         Holdfast__Internal__V1__CutTotals *told)
{
    struct buf bytes = { 0 };

    totals_encode_buckets(&cut->totals, &bytes);
    struct slice copy = arena_copy(arena, buf_slice(&bytes));
    buf_deinit(&bytes);
    told->has_buckets = true;
    told->buckets.data = (uint8_t *)(uintptr_t)copy.data;
    told->buckets.len = copy.size;
}

void audit_tell(struct arena *arena, const struct meta *meta, bool with_buckets,
                Holdfast__Internal__V1__TakeCutResponse *ret_response)
{
    ret_response->totals =
        arena_messages(arena, &holdfast__internal__v1__cut_totals__descriptor, CUTS_KEPT);
    for (uint32_t i = 0; i < CUTS_KEPT && meta->cuts[i].id > 0; i++) {
        Holdfast__Internal__V1__CutTotals *told = ret_response->totals[ret_response->n_totals++];
        tell(arena, &meta->cuts[i], told);
        if (with_buckets)
            tell_buckets(arena, &meta->cuts[i], told);
    }
}
