#include "runtime/tls/tls_config.h"

#include <stdlib.h>
#include <string.h>

#include <mbedtls/platform_util.h>

#include "runtime/base/check.h"
#include "runtime/tls/tls_private.h"
#include "runtime/tls/tls_resumption.h"

/* ChaCha20 first: mbedtls 2.28 does AES-GCM one block at a time, so that even with the processor's
 * AES instructions 16 KiB cost 3.3 ns a byte against 2.5 (measured on the reference machine). */
#define CIPHERS_FOR_ALL                                                                            \
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,                                         \
        MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,                                       \
        MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,                                           \
        MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,                                             \
        MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,                                           \
        MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
static const int ciphers[] = { CIPHERS_FOR_ALL, 0 };
/* Between processes of a cluster, whose processors have those instructions: AES-CCM (RFC 7251),
 * which needs nothing but AES, costs 1.6 ns a byte. One without them does not offer it. */
static const int ciphers_of_links[] = { MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_CCM, CIPHERS_FOR_ALL,
                                        0 };
/* Fast curves first; mbedtls would begin with P-521. */
static const mbedtls_ecp_group_id curves[] = { MBEDTLS_ECP_DP_CURVE25519, MBEDTLS_ECP_DP_SECP256R1,
                                               MBEDTLS_ECP_DP_SECP384R1, MBEDTLS_ECP_DP_SECP521R1,
                                               MBEDTLS_ECP_DP_NONE };

static bool is_present(const struct tls_pem *pem)
{
    return pem->path != NULL || pem->text.size > 0;
}

static const char *origin(const struct tls_pem *pem)
{
    return pem->path != NULL ? pem->path : "(memory)";
}

static err load(const struct tls_pem *pem, struct buf *ret_text, struct tls_error *ret_error)
{
    if (!is_present(pem))
        return ERR_OK;
    if (pem->path != NULL) {
        err e = tls_file_read(pem->path, ret_text, ret_error);
        return e == ERR_NOT_FOUND ? ERR_IO : e;
    }
    if (pem->text.size > TLS_PEM_SIZE_MAX) {
        tls_error_set(ret_error, "PEM of %zu bytes is over the limit of %u", pem->text.size,
                      TLS_PEM_SIZE_MAX);
        return ERR_TOO_LARGE;
    }
    buf_append(ret_text, pem->text.data, pem->text.size);
    if (ret_text->data[ret_text->size - 1] != 0)
        buf_put_u8(ret_text, 0);
    return ERR_OK;
}

static err parse_crt(mbedtls_x509_crt *crt, const struct buf *pem, const char *what,
                     const char *from, struct tls_error *ret_error)
{
    if (pem->size == 0)
        return ERR_OK;
    int code = mbedtls_x509_crt_parse(crt, pem->data, pem->size);
    if (code == 0)
        return ERR_OK;
    struct tls_error why = tls_error_of(code);
    if (code > 0)
        tls_error_set(ret_error, "%s %s: %d of its certificates are unreadable", what, from, code);
    else
        tls_error_set(ret_error, "%s %s: %.180s", what, from, why.text);
    return ERR_INVALID;
}

static err parse_key(struct tls_config *config, const struct tls_options *options,
                     struct tls_error *ret_error)
{
    if (config->key_pem.size == 0)
        return ERR_OK;
    int code =
        mbedtls_pk_parse_key(&config->key, config->key_pem.data, config->key_pem.size, NULL, 0);
    if (code != 0) {
        struct tls_error why = tls_error_of(code);
        tls_error_set(ret_error, "key %s: %.180s", origin(&options->key), why.text);
        return ERR_INVALID;
    }
    if (mbedtls_pk_check_pair(&config->cert.pk, &config->key) != 0) {
        tls_error_set(ret_error, "key %s does not belong to certificate %s", origin(&options->key),
                      origin(&options->cert));
        return ERR_INVALID;
    }
    return ERR_OK;
}

static err check_options(const struct tls_options *options, struct tls_error *ret_error)
{
    if (is_present(&options->cert) != is_present(&options->key)) {
        tls_error_set(ret_error, "cert and key must be given together");
        return ERR_INVALID;
    }
    if (options->side == TLS_SERVER && !is_present(&options->cert)) {
        tls_error_set(ret_error, "a server needs cert and key");
        return ERR_INVALID;
    }
    if (options->verify_peer && !is_present(&options->ca)) {
        tls_error_set(ret_error, "ca is needed to verify the peer");
        return ERR_INVALID;
    }
    if (options->resumption && options->verify_peer) {
        tls_error_set(ret_error, "resumption and verify_peer exclude each other");
        return ERR_INVALID;
    }
    if (options->alpn[TLS_ALPN_COUNT_MAX] != NULL) {
        tls_error_set(ret_error, "alpn: more than %u names", TLS_ALPN_COUNT_MAX);
        return ERR_INVALID;
    }
    return ERR_OK;
}

static err load_all(struct tls_config *config, const struct tls_options *options,
                    struct tls_error *ret_error)
{
    err e = load(&options->ca, &config->ca_pem, ret_error);
    if (e == ERR_OK)
        e = load(&options->cert, &config->cert_pem, ret_error);
    if (e == ERR_OK)
        e = load(&options->key, &config->key_pem, ret_error);
    if (e == ERR_OK)
        e = parse_crt(&config->ca, &config->ca_pem, "ca", origin(&options->ca), ret_error);
    if (e == ERR_OK)
        e = parse_crt(&config->cert, &config->cert_pem, "cert", origin(&options->cert), ret_error);
    if (e == ERR_OK)
        e = parse_key(config, options, ret_error);
    return e;
}

static err copy_alpn(struct tls_config *config, const struct tls_options *options)
{
    size_t offsets[TLS_ALPN_COUNT_MAX];
    size_t count = 0;

    for (; options->alpn[count] != NULL; count++) {
        offsets[count] = config->alpn_text.size;
        buf_append(&config->alpn_text, options->alpn[count], strlen(options->alpn[count]) + 1);
    }
    for (size_t i = 0; i < count; i++)
        config->alpn[i] = (const char *)config->alpn_text.data + offsets[i];
    if (count == 0)
        return ERR_OK;
    return mbedtls_ssl_conf_alpn_protocols(&config->conf, config->alpn) == 0 ? ERR_OK : ERR_INVALID;
}

static err apply(struct tls_config *config, const struct tls_options *options)
{
    mbedtls_ssl_config *conf = &config->conf;

    if (mbedtls_ssl_config_defaults(
            conf, options->side == TLS_SERVER ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
            MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT) != 0)
        return ERR_NO_MEMORY;
    mbedtls_ssl_conf_rng(conf, tls_random, NULL);
    mbedtls_ssl_conf_min_version(conf, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_ciphersuites(
        conf, options->verify_peer && tls_has_fast_aes() ? ciphers_of_links : ciphers);
    mbedtls_ssl_conf_curves(conf, curves);
    if (options->side == TLS_CLIENT)
        mbedtls_ssl_conf_session_tickets(conf, MBEDTLS_SSL_SESSION_TICKETS_DISABLED);
    mbedtls_ssl_conf_authmode(conf, options->verify_peer ? MBEDTLS_SSL_VERIFY_REQUIRED
                                                         : MBEDTLS_SSL_VERIFY_NONE);
    if (config->ca_pem.size > 0)
        mbedtls_ssl_conf_ca_chain(conf, &config->ca, NULL);
    if (config->cert_pem.size > 0 &&
        mbedtls_ssl_conf_own_cert(conf, &config->cert, &config->key) != 0)
        return ERR_NO_MEMORY;
    if (options->side == TLS_SERVER && options->resumption)
        return tls_resumption_start(config);
    return ERR_OK;
}

err tls_config_new(const struct tls_options *options, struct tls_config **ret_config,
                   struct tls_error *ret_error)
{
    struct tls_config *config = mem_zalloc(sizeof *config);

    ret_error->text[0] = 0;
    atomic_init(&config->owners, 1);
    config->side = options->side;
    mbedtls_ssl_config_init(&config->conf);
    mbedtls_x509_crt_init(&config->ca);
    mbedtls_x509_crt_init(&config->cert);
    mbedtls_pk_init(&config->key);
    tls_resumption_init(config);
    if (options->server_name != NULL) {
        size_t size = strlen(options->server_name) + 1;
        config->server_name = mem_alloc(size);
        memcpy(config->server_name, options->server_name, size);
    }
    err e = check_options(options, ret_error);
    if (e == ERR_OK)
        e = load_all(config, options, ret_error);
    if (e == ERR_OK)
        e = apply(config, options);
    if (e == ERR_OK)
        e = copy_alpn(config, options);
    if (e != ERR_OK) {
        if (ret_error->text[0] == 0)
            tls_error_set(ret_error, "%s", err_text(e));
        tls_config_free(config);
        return e;
    }
    *ret_config = config;
    return ERR_OK;
}

struct tls_config *tls_config_hold(struct tls_config *config)
{
    atomic_fetch_add(&config->owners, 1);
    return config;
}

void tls_config_free(struct tls_config *config)
{
    if (config == NULL || atomic_fetch_sub(&config->owners, 1) != 1)
        return;
    mbedtls_ssl_config_free(&config->conf);
    tls_resumption_deinit(config);
    mbedtls_x509_crt_free(&config->ca);
    mbedtls_x509_crt_free(&config->cert);
    mbedtls_pk_free(&config->key);
    if (config->key_pem.size > 0)
        mbedtls_platform_zeroize(config->key_pem.data, config->key_pem.size);
    buf_deinit(&config->ca_pem);
    buf_deinit(&config->cert_pem);
    buf_deinit(&config->key_pem);
    buf_deinit(&config->alpn_text);
    free(config->server_name);
    free(config);
}

enum tls_side tls_config_side(const struct tls_config *config)
{
    return config->side;
}

size_t tls_config_own_sans(const struct tls_config *config, struct tls_san *ret_sans, size_t max)
{
    return config->cert_pem.size > 0 ? tls_sans_of(&config->cert, ret_sans, max) : 0;
}

uint64_t tls_config_expires_ms(const struct tls_config *config)
{
    return config->cert_pem.size > 0 ? tls_time_ms(&config->cert.valid_to) : 0;
}
