/* fixture_restore: a shard as a backup has it, put into a shard of a new cluster. Tests only. */
#ifndef NODE_RPC_FIXTURE_RESTORE_H
#define NODE_RPC_FIXTURE_RESTORE_H

#include "node/rpc/fixture.h"
#include "runtime/base/row_digest.h"

/* Of few rows: they go into one part. */
struct fixture_backup {
    struct buf rows, meta_row;
    struct row_digest digest;
    uint64_t epoch, generation, ids, now_ms;
};

/* As the shard is now; what was in `backup` is gone. */
void fixture_back_up(struct fixture *f, struct fixture_backup *backup);
void fixture_backup_deinit(struct fixture_backup *backup);
/* `f` was just made. It rises above what was backed up, as PrepareRestore has it do; definitions
 * come behind that, and then the rows. */
void fixture_rise_above(struct fixture *f, const struct fixture_backup *backup);
/* False: refused; f->error says why. */
bool fixture_restore(struct fixture *f, const struct fixture_backup *backup);

#endif
