/*
 * api_key: the keys of game servers and back-end services for the public port, and their records in
 * etcd (DESIGN section 11). A key is 32 random bytes, shown once when it is issued as
 * "hf_<64 hexadecimal digits>". Kept is only its HMAC-SHA-256 under a text with the cluster's name:
 * since a key is random in all its 256 bits, a fast function is as safe as a slow one, and the same
 * key issued for two clusters has unlike records. Pure: randomness and time come from the caller.
 */
#ifndef RUNTIME_CLUSTER_API_KEY_H
#define RUNTIME_CLUSTER_API_KEY_H

#include "idl/scope.h"
#include "runtime/cluster/cluster_record.h"
#include "runtime/cluster/mint_limits.h"

enum {
    API_KEY_SECRET_BYTES = 32,
    API_KEY_DIGEST_BYTES = 32,
    API_KEY_TEXT_SIZE = 3 + 2 * API_KEY_SECRET_BYTES + 1, /* With the NUL. */
    API_KEY_ID_SIZE = 12 + 1,
    API_KEY_NAME_SIZE = 64,
    API_KEY_SERVERS_SIZE = 256,
    API_KEY_RATE_MAX = 1000000,
    API_KEYS_MAX = 8192 /* Of a cluster; routers know no more. */
};

struct api_key_record {
    char id[API_KEY_ID_SIZE];             /* Begins the digest; names the key in lists and logs. */
    char name[API_KEY_NAME_SIZE];         /* What people call it; 1 to 63 bytes. */
    uint32_t scopes;                      /* Of enum scope; at least one. */
    uint8_t digest[API_KEY_DIGEST_BYTES]; /* See api_key_digest. */
    uint64_t created_at_ms;               /* Unix time. */
    uint64_t expires_at_ms;               /* Unix time; 0: never. */
    uint32_t authority; /* Of enum scope: mutations that name no authority get system:<its name>;
                         * one of `scopes` but game and read, or 0: none. */
    char servers[API_KEY_SERVERS_SIZE]; /* Names that it may register: "eu-*,us-1"; empty: any. */
    char grants[MINT_TEXT_SIZE];        /* What a call may make (mint_limits.h); empty: no limit. */
    char per_day[MINT_TEXT_SIZE];       /* And a day; empty: no limit. */
    uint32_t rate_per_s; /* Requests a second at each router; 0: as the router is configured. */
    /* Id of the key that it replaces, or that this one replaced in turn: what either registers
     * belongs to both. Empty: it replaces none. */
    char holder[API_KEY_ID_SIZE];
};

void api_key_print(const uint8_t secret[API_KEY_SECRET_BYTES], char ret_text[API_KEY_TEXT_SIZE]);
/* False: the text has not the form of a key. */
bool api_key_parse(struct slice text, uint8_t ret_secret[API_KEY_SECRET_BYTES]);
/* `cluster` is the cluster's name. */
void api_key_digest(const char *cluster, const uint8_t secret[API_KEY_SECRET_BYTES],
                    uint8_t ret_digest[API_KEY_DIGEST_BYTES]);
/* The id that a record with that digest has. */
void api_key_id(const uint8_t digest[API_KEY_DIGEST_BYTES], char ret_id[API_KEY_ID_SIZE]);

/* Whether `name` is one of a list of names, of which each may end in '*', which stands for any end;
 * in an empty list every name is. */
bool api_key_admits_server(const char *servers, struct slice name);

/* encode, decode and validate: as those of cluster_record.h. */
/* The id under which the key registers game servers. */
const char *api_key_holder(const struct api_key_record *record);

void api_key_record_encode(const struct api_key_record *record, struct buf *out);
NODISCARD err api_key_record_decode(struct slice json, struct api_key_record *ret_record,
                                    struct record_error *ret_why);
NODISCARD err api_key_record_validate(const struct api_key_record *record,
                                      struct record_error *ret_why);

#endif
