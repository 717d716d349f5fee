#include "runtime/tls/tls_resumption.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define TICKET_LIFETIME_S                                                                          \
    3600u                     /* A key makes tickets for so long, and then reads them as long.     \
                               */
#define CACHE_ENTRIES_MAX 256 /* Searched one by one. */

static int parse_ticket(void *user, mbedtls_ssl_session *session, unsigned char *bytes, size_t size)
{
    struct tls_config *config = CONTAINER_OF(user, struct tls_config, tickets);
    int code = mbedtls_ssl_ticket_parse(&config->tickets, session, bytes, size);

    config->resumed += code == 0;
    return code;
}

static int find_session(void *user, mbedtls_ssl_session *session)
{
    struct tls_config *config = user;
    int code = mbedtls_ssl_cache_get(&config->cache, session);

    config->resumed += code == 0;
    return code;
}

static int keep_session(void *user, const mbedtls_ssl_session *session)
{
    struct tls_config *config = user;

    return mbedtls_ssl_cache_set(&config->cache, session);
}

void tls_resumption_init(struct tls_config *config)
{
    mbedtls_ssl_ticket_init(&config->tickets);
    mbedtls_ssl_cache_init(&config->cache);
}

err tls_resumption_start(struct tls_config *config)
{
    if (mbedtls_ssl_ticket_setup(&config->tickets, tls_random, NULL, MBEDTLS_CIPHER_AES_256_GCM,
                                 TICKET_LIFETIME_S) != 0)
        return ERR_NO_MEMORY;
    mbedtls_ssl_cache_set_max_entries(&config->cache, CACHE_ENTRIES_MAX);
    mbedtls_ssl_cache_set_timeout(&config->cache, TICKET_LIFETIME_S);
    mbedtls_ssl_conf_session_tickets_cb(&config->conf, mbedtls_ssl_ticket_write, parse_ticket,
                                        &config->tickets);
    mbedtls_ssl_conf_session_cache(&config->conf, config, find_session, keep_session);
    return ERR_OK;
}

void tls_resumption_deinit(struct tls_config *config)
{
    mbedtls_ssl_ticket_free(&config->tickets);
    mbedtls_ssl_cache_free(&config->cache);
}
