#include "node/rpc/fixture_restore.h"

#include "holdfast/v1/backup.pb-c.h"
#include "idl/method.h"
#include "node/core/apply/restore.h"
#include "runtime/base/check.h"

#define RESTORE_ID   "sixteen bytes of"
#define EPOCHS_ABOVE 1000u

void fixture_back_up(struct fixture *f, struct fixture_backup *backup)
{
    fixture_checkpoint(f);
    buf_clear(&backup->rows);
    buf_clear(&backup->meta_row);
    buf_append(&backup->meta_row, f->meta_row.data, f->meta_row.size);
    backup->digest = (struct row_digest){ 0 };
    backup->epoch = f->epoch;
    backup->generation = f->generation;
    backup->ids = f->ids;
    backup->now_ms = f->now_ms;
    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice key = buf_slice(&f->rows[i].key), value = buf_slice(&f->rows[i].value);
        buf_put_bytes(&backup->rows, key);
        buf_put_bytes(&backup->rows, value);
        row_digest_add(&backup->digest, key, value);
    }
    CHECK(backup->rows.size <= RESTORE_PART_BYTES_MAX);
}

void fixture_backup_deinit(struct fixture_backup *backup)
{
    buf_deinit(&backup->rows);
    buf_deinit(&backup->meta_row);
}

void fixture_rise_above(struct fixture *f, const struct fixture_backup *backup)
{
    f->ids = backup->ids; /* None twice. */
    f->now_ms = backup->now_ms;
    f->generation = backup->generation + 2; /* 0 is the first. */
    f->epoch = backup->epoch + EPOCHS_ABOVE;
    fixture_next_epoch(f);
}

static ProtobufCBinaryData lend(struct slice bytes)
{
    return (ProtobufCBinaryData){ bytes.size, (uint8_t *)(uintptr_t)bytes.data };
}

bool fixture_restore(struct fixture *f, const struct fixture_backup *backup)
{
    Holdfast__V1__BeginRestoreRequest begin = HOLDFAST__V1__BEGIN_RESTORE_REQUEST__INIT;
    Holdfast__V1__RestoreRowsRequest put = HOLDFAST__V1__RESTORE_ROWS_REQUEST__INIT;
    Holdfast__V1__FinishRestoreRequest finish = HOLDFAST__V1__FINISH_RESTORE_REQUEST__INIT;
    struct hash128 sum = row_digest_sum(&backup->digest);

    begin.restore_id = put.restore_id = finish.restore_id = lend(slice_from_text(RESTORE_ID));
    begin.meta = finish.meta = lend(buf_slice(&backup->meta_row));
    put.rows = lend(buf_slice(&backup->rows));
    finish.row_count = backup->digest.count;
    finish.digest = lend((struct slice){ sum.bytes, sizeof sum.bytes });
    return fixture_mutate(f, METHOD_BEGIN_RESTORE, &begin.base) != NULL &&
           fixture_mutate(f, METHOD_RESTORE_ROWS, &put.base) != NULL &&
           fixture_mutate(f, METHOD_FINISH_RESTORE, &finish.base) != NULL;
}
