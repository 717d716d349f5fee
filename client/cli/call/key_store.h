/*
 * key_store: the API keys in a cluster's etcd, for its operator, who has access to that. Calls
 * block until they are answered or the deadline of --deadline-ms is over. DESIGN section 11. On
 * ERR_TIMEOUT of a change its outcome is unknown; reads are ERR_UNAVAILABLE.
 */
#ifndef CLIENT_CLI_CALL_KEY_STORE_H
#define CLIENT_CLI_CALL_KEY_STORE_H

#include "client/cli/console/options.h"
#include "runtime/cluster/api_key.h"
#include "runtime/cluster/session_token.h"

struct key_store;

#define OPTIONS_OF_ETCD                                                                            \
    &option_etcd, &option_etcd_ca, &option_etcd_cert, &option_etcd_key, &option_cluster
extern const struct command_option option_etcd, option_etcd_ca, option_etcd_cert, option_etcd_key;

/* By --etcd, --etcd-ca, --etcd-cert, --etcd-key and --cluster. On error it has been written to
 * standard error, as by all functions here. */
NODISCARD err key_store_open(const struct arguments *arguments, struct key_store **ret_store);
/* NULL is allowed. */
void key_store_close(struct key_store *store);

/* Writes it, over one of the same id too, and over a revocation. ERR_INVALID: there are
 * API_KEYS_MAX others. */
NODISCARD err key_store_put(struct key_store *store, const struct api_key_record *record);
NODISCARD err key_store_remove(struct key_store *store, const struct api_key_record *record);
/* Writes its name, scopes and authority; the limits of one that stands are kept, and told in
 * *record. *ret_revoked: it was revoked and stays so; nothing was written. */
NODISCARD err key_store_register(struct key_store *store, struct api_key_record *record,
                                 bool *ret_revoked);
/* All of them, by id; *ret_records is to be freed. Records that cannot be read are told and left
 * out. */
NODISCARD err key_store_list(struct key_store *store, struct api_key_record **ret_records,
                             uint32_t *ret_count);

/* The secret of session tokens. ERR_NOT_FOUND: no router of the cluster has run yet. */
NODISCARD err key_store_get_secret(struct key_store *store, struct token_secret_record *ret_record,
                                   int64_t *ret_revision);
/* Only over what was read at *revision, which becomes the new one's. */
NODISCARD err key_store_put_secret(struct key_store *store,
                                   const struct token_secret_record *record, int64_t *revision);

#endif
