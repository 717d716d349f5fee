#include "runtime/etcd/etcd_client.h"

void etcd_follow(struct etcd *etcd, struct etcd_follower *follower)
{
    follower->next = etcd->followers;
    if (follower->next != NULL)
        follower->next->previous = follower;
    etcd->followers = follower;
}

void etcd_unfollow(struct etcd *etcd, struct etcd_follower *follower)
{
    if (follower->previous != NULL)
        follower->previous->next = follower->next;
    else
        etcd->followers = follower->next;
    if (follower->next != NULL)
        follower->next->previous = follower->previous;
}

static void rollback_report(struct etcd *etcd, enum etcd_rollback_kind kind,
                            const struct etcd_header *header)
{
    struct etcd_rollback rollback = { .kind = kind,
                                      .cluster_id_known = etcd->cluster_id,
                                      .cluster_id_seen = header->cluster_id,
                                      .revision_known = etcd->revision,
                                      .revision_seen = header->revision };

    etcd->rolled_back = true;
    log_event(etcd->log, LOG_ERROR, "etcd.rolled_back",
              LOG_N("cluster_id_known", rollback.cluster_id_known),
              LOG_N("cluster_id_seen", rollback.cluster_id_seen),
              LOG_N("revision_known", rollback.revision_known),
              LOG_N("revision_seen", rollback.revision_seen));
    if (etcd->on_rollback != NULL)
        etcd->on_rollback(etcd->context, &rollback);
}

void etcd_observe(struct etcd *etcd, const struct etcd_header *header, int64_t revision_min)
{
    if (etcd->rolled_back || header->cluster_id == 0)
        return;
    if (etcd->cluster_id != 0 && etcd->cluster_id != header->cluster_id) {
        rollback_report(etcd, ETCD_CLUSTER_ID_CHANGED, header);
        return;
    }
    if (header->revision < revision_min) {
        rollback_report(etcd, ETCD_REVISION_WENT_BACK, header);
        return;
    }
    etcd->cluster_id = header->cluster_id;
    if (header->revision > etcd->revision)
        etcd->revision = header->revision;
}

void etcd_rotate(struct etcd *etcd, uint32_t endpoint)
{
    if (etcd->endpoint == endpoint)
        etcd->endpoint = (endpoint + 1) % etcd->endpoint_count;
}
