/* node_documents: the mergeable class as a part of a node: its replicas, and what they follow in
 * etcd. */
#ifndef NODE_IO_PROCESS_NODE_DOCUMENTS_H
#define NODE_IO_PROCESS_NODE_DOCUMENTS_H

#include "node/io/cluster/peers.h"
#include "node/io/cluster/registry.h"
#include "node/io/mergeable/mergers.h"
#include "node/io/process/service.h"
#include "node/io/view/shard_view.h"

struct node_documents;

struct node_documents_options {
    struct loop *loop;
    const struct log *log;
    const char *data_dir, *cluster;
    struct registry *registry;
    struct peers *peers;
    struct service *service;
    struct metrics *metrics;
    struct space *space;
    uint64_t self, boot;
    struct shard_views *views;
};

/* Calls are taken from now on. ERR_IO: `ret_text` says why. */
NODISCARD err node_documents_new(const struct node_documents_options *options,
                                 struct node_documents **ret_documents,
                                 char ret_text[MERGERS_TEXT_BYTES]);
/* Before registry, peers and service go; runs the loop. NULL is allowed, and twice. */
void node_documents_stop(struct node_documents *documents);
/* After the last scrape of metrics. NULL is allowed. */
void node_documents_free(struct node_documents *documents);
/* NULL is allowed, and after stop: nothing comes of it. Called before the strict class is told, so
 * that an owner that knows of a joint phase answers for its documents, too. */
void node_documents_record(struct node_documents *documents, uint32_t shard,
                           const struct rep_record *record);
void node_documents_message(struct node_documents *documents, uint64_t from, struct slice bytes);

#endif
