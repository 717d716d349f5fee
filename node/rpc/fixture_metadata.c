#include "node/rpc/fixture_metadata.h"

#include <stdio.h>

#include "runtime/cluster/placement.h"

void fixture_target_name(const struct fixture *f, uint32_t number,
                         char ret_name[FIXTURE_TARGET_SIZE])
{
    uint32_t at = number * 1000;

    do
        snprintf(ret_name, FIXTURE_TARGET_SIZE, "target-%u", at++);
    while (f->shard_count > 0 &&
           shard_of_target(slice_from_text(ret_name), f->shard_count) != f->shard);
}

void fixture_metadata_all(struct fixture *f)
{
    Holdfast__V1__PutTargetMetadataRequest put = HOLDFAST__V1__PUT_TARGET_METADATA_REQUEST__INIT;
    Holdfast__V1__BatchGetTargetMetadataRequest get =
        HOLDFAST__V1__BATCH_GET_TARGET_METADATA_REQUEST__INIT;
    Holdfast__V1__DeleteTargetMetadataRequest gone =
        HOLDFAST__V1__DELETE_TARGET_METADATA_REQUEST__INIT;
    char name[FIXTURE_TARGET_SIZE], other[FIXTURE_TARGET_SIZE], *names[] = { name };

    fixture_target_name(f, 0, name);
    fixture_target_name(f, 1, other);
    put.target_id = name;
    put.op_id = fixture_op_id(f);
    put.title = (char *)(uintptr_t) "Tetris";
    put.thumbnail_url = (char *)(uintptr_t) "https://images.example/tetris.png";
    put.attributes = (char *)(uintptr_t) "{\"players\":1}";
    (void)fixture_mutate(f, METHOD_PUT_TARGET_METADATA, &put.base);
    get.target_ids = names;
    get.n_target_ids = 1;
    (void)fixture_read(f, METHOD_BATCH_GET_TARGET_METADATA, &get.base);
    gone.target_id = other;
    (void)fixture_mutate(f, METHOD_DELETE_TARGET_METADATA, &gone.base);
}
