/*
 * etcd_note: writes down, in the data directory, which etcd this node has seen and how far it was,
 * so that a later life notices when etcd was restored from a backup or replaced (DESIGN section 4).
 * It is as new as ETCD_NOTE_MS: what etcd lost in less is not noticed by a life that did not see
 * it.
 */
#ifndef NODE_IO_CLUSTER_ETCD_NOTE_H
#define NODE_IO_CLUSTER_ETCD_NOTE_H

#include "node/io/cluster/registry.h"
#include "node/store/datadir.h"

#define ETCD_NOTE_MS 2000u

struct etcd_note;

struct etcd_note_options {
    struct loop *loop;
    const struct log *log;
    const struct registry *registry; /* Knows the cluster's record. */
    struct datadir *datadir;
};

struct etcd_note *etcd_note_new(const struct etcd_note_options *options);
/* Waits for a write on its way. NULL is allowed. */
void etcd_note_free(struct etcd_note *note);

#endif
