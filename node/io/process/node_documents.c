#include "node/io/process/node_documents.h"

#include <stdio.h>
#include <stdlib.h>

#include "node/io/cluster/document_feed.h"
#include "node/io/cluster/server_feed.h"
#include "node/io/report/document_metrics.h"
#include "runtime/base/check.h"

#define PATH_BYTES    4096u
#define LEAVE_WAIT_MS 300000u

struct node_documents {
    struct node_documents_options options;
    struct mergers *mergers;
    struct document_feed *feed;
    struct living living;
    struct server_feed *servers;
    struct document_metrics *metrics;
    char directory[PATH_BYTES];
};

static void on_send(void *user, uint64_t replica, struct slice message)
{
    const struct node_documents *documents = user;

    peers_send_document(documents->options.peers, replica, message);
}

static bool on_takes(void *user, uint64_t replica)
{
    const struct node_documents *documents = user;

    return peers_may_take_documents(documents->options.peers, replica);
}

static void on_answer(void *user, uint64_t call, const struct shard_reply *reply, struct slice body)
{
    const struct node_documents *documents = user;

    service_answer(documents->options.service, call, reply, body);
}

static bool on_restored(void *user, uint32_t shard, struct mergers_restored *ret_restored)
{
    const struct node_documents *documents = user;

    return shard_views_restored(documents->options.views, shard, &ret_restored->generation,
                                &ret_restored->goes_on);
}

static void on_definition(void *user, struct slice version)
{
    const struct node_documents *documents = user;

    mergers_definition(documents->mergers, version);
}

static void on_reset(void *user)
{
    const struct node_documents *documents = user;

    mergers_definitions_reset(documents->mergers);
}

static void on_complete(void *user)
{
    const struct node_documents *documents = user;

    mergers_definitions_complete(documents->mergers);
}

static void on_secret(void *user, const uint8_t secret[DOCUMENT_SECRET_BYTES])
{
    const struct node_documents *documents = user;

    mergers_secret(documents->mergers, secret);
}

static err make(struct node_documents *documents, char ret_text[MERGERS_TEXT_BYTES])
{
    const struct node_documents_options *options = &documents->options;
    err e = mergers_new(&(struct mergers_options){ .loop = options->loop,
                                                   .log = options->log,
                                                   .directory = documents->directory,
                                                   .space = options->space,
                                                   .erasures = shard_views_erasures(options->views),
                                                   .self = options->self,
                                                   .boot = options->boot,
                                                   .shard_count = shard_views_count(options->views),
                                                   .living = &documents->living,
                                                   .send = on_send,
                                                   .takes = on_takes,
                                                   .leave_wait_ms = LEAVE_WAIT_MS,
                                                   .restored = on_restored,
                                                   .answer = on_answer,
                                                   .user = documents },
                        &documents->mergers, ret_text);

    if (e != ERR_OK)
        return e;
    e = document_feed_new(
        &(struct document_feed_options){ .loop = options->loop,
                                         .etcd = registry_etcd_use(options->registry),
                                         .cluster = options->cluster,
                                         .log = options->log,
                                         .definition = on_definition,
                                         .reset = on_reset,
                                         .complete = on_complete,
                                         .secret = on_secret,
                                         .user = documents },
        &documents->feed);
    if (e == ERR_OK)
        e = server_feed_new(
            &(struct server_feed_options){ .etcd = registry_etcd_use(options->registry),
                                           .cluster = options->cluster,
                                           .log = options->log,
                                           .living = &documents->living },
            &documents->servers);
    if (e != ERR_OK)
        snprintf(ret_text, MERGERS_TEXT_BYTES, "etcd: %s", err_text(e));
    return e;
}

err node_documents_new(const struct node_documents_options *options,
                       struct node_documents **ret_documents, char ret_text[MERGERS_TEXT_BYTES])
{
    struct node_documents *documents = mem_zalloc(sizeof *documents);

    documents->options = *options;
    snprintf(documents->directory, sizeof documents->directory, "%s/mergeable", options->data_dir);
    err e = make(documents, ret_text);

    if (e != ERR_OK) {
        node_documents_free(documents);
        return e;
    }
    documents->metrics = document_metrics_new(options->metrics, documents->mergers);
    service_set_mergers(options->service, documents->mergers);
    *ret_documents = documents;
    return ERR_OK;
}

void node_documents_stop(struct node_documents *documents)
{
    if (documents == NULL || documents->mergers == NULL)
        return;
    service_set_mergers(documents->options.service, NULL);
    document_metrics_clear(documents->metrics);
    document_feed_free(documents->feed);
    documents->feed = NULL;
    server_feed_free(documents->servers);
    documents->servers = NULL;
    mergers_free(documents->mergers);
    documents->mergers = NULL;
    living_deinit(&documents->living);
}

void node_documents_free(struct node_documents *documents)
{
    if (documents == NULL)
        return;
    node_documents_stop(documents);
    document_metrics_free(documents->metrics);
    free(documents);
}

void node_documents_record(struct node_documents *documents, uint32_t shard,
                           const struct rep_record *record)
{
    if (documents == NULL || documents->mergers == NULL)
        return;
    living_begin_generation(&documents->living, record->generation);
    mergers_record(documents->mergers, shard, record);
}

void node_documents_message(struct node_documents *documents, uint64_t from, struct slice bytes)
{
    if (documents != NULL && documents->mergers != NULL &&
        mergers_message(documents->mergers, from, bytes) != ERR_OK)
        log_event(documents->options.log, LOG_ERROR, "peer.malformed_message",
                  LOG_N("replica", from));
}
