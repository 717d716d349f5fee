#include "runtime/tls/certs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <mbedtls/oid.h>

#include "runtime/base/check.h"
#include "runtime/tls/tls_private.h"

#define DAY_MS           86400000u
#define HOUR_MS          3600000u
#define SAN_SIZE_MAX     127u /* One byte of DER length. */
#define SAN_URI_SIZE_MAX 255u /* One byte of length behind 0x81. */
#define PEM_OUT_SIZE     16384u
#define DN_SIZE          256u
#define SERIAL_SIZE      16u
#define X509_TIME_SIZE   16u

/* A certificate with its key. */
struct pair {
    mbedtls_x509_crt crt;
    mbedtls_pk_context key;
};

static void pair_init(struct pair *pair)
{
    mbedtls_x509_crt_init(&pair->crt);
    mbedtls_pk_init(&pair->key);
}

static void pair_deinit(struct pair *pair)
{
    mbedtls_x509_crt_free(&pair->crt);
    mbedtls_pk_free(&pair->key);
}

static uint64_t now_ms(void)
{
    return (uint64_t)time(NULL) * 1000u;
}

static err check_name(const char *field, const char *name, struct tls_error *ret_error)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-_.";
    size_t size = strlen(name);

    if (size == 0 || size > CERTS_NAME_SIZE_MAX || strspn(name, allowed) != size ||
        name[0] == '.') {
        tls_error_set(ret_error, "%s '%.80s': 1 to %u letters, digits, '-', '_' or '.'", field,
                      name, CERTS_NAME_SIZE_MAX);
        return ERR_INVALID;
    }
    return ERR_OK;
}

static err make_path(const char *directory, const char *stem, const char *suffix,
                     char ret_path[CERTS_PATH_SIZE])
{
    int size = snprintf(ret_path, CERTS_PATH_SIZE, "%s/%s%s", directory, stem, suffix);

    return size > 0 && (size_t)size < CERTS_PATH_SIZE ? ERR_OK : ERR_INVALID;
}

/* Whole or not at all: a temporary file, synced, then renamed. */
static err write_file(const char *path, const char *text, mode_t mode, struct tls_error *ret_error)
{
    char temporary[CERTS_PATH_SIZE + 8];
    size_t size = strlen(text);

    snprintf(temporary, sizeof temporary, "%s.new", path);
    unlink(temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    bool good = fd >= 0 && write(fd, text, size) == (ssize_t)size && fsync(fd) == 0;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    if (good && rename(temporary, path) == 0)
        return ERR_OK;
    saved = good ? errno : saved;
    unlink(temporary);
    tls_error_set(ret_error, "%.180s: %s", path, strerror(saved));
    return ERR_IO;
}

/* ERR_NOT_FOUND: one of the two files is absent; ERR_INVALID: unreadable or not a pair. */
static err pair_load(const char *directory, const char *stem, struct pair *ret_pair,
                     struct tls_error *ret_error)
{
    char crt_path[CERTS_PATH_SIZE], key_path[CERTS_PATH_SIZE];
    struct buf crt = { 0 }, key = { 0 };

    if (make_path(directory, stem, ".crt", crt_path) != ERR_OK ||
        make_path(directory, stem, ".key", key_path) != ERR_OK) {
        tls_error_set(ret_error, "path over %u bytes", CERTS_PATH_SIZE);
        return ERR_INVALID;
    }
    err e = tls_file_read(crt_path, &crt, ret_error);
    if (e == ERR_OK)
        e = tls_file_read(key_path, &key, ret_error);
    if (e == ERR_OK && (mbedtls_x509_crt_parse(&ret_pair->crt, crt.data, crt.size) != 0 ||
                        mbedtls_pk_parse_key(&ret_pair->key, key.data, key.size, NULL, 0) != 0 ||
                        mbedtls_pk_check_pair(&ret_pair->crt.pk, &ret_pair->key) != 0)) {
        tls_error_set(ret_error, "%.120s is no certificate with its key beside it", crt_path);
        e = ERR_INVALID;
    }
    buf_deinit(&crt);
    buf_deinit(&key);
    return e;
}

/* ---- making one ---- */

struct recipe {
    struct pair *subject; /* Its key is made here; crt stays empty. */
    struct pair *issuer;  /* NULL: self-signed. */
    char subject_dn[DN_SIZE];
    char issuer_dn[DN_SIZE];
    bool is_ca;
    struct slice sans; /* DER, or empty. */
    uint64_t from_ms;
    uint64_t to_ms;
};

static int make_key(mbedtls_pk_context *key)
{
    int code = mbedtls_pk_setup(key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));

    if (code != 0)
        return code;
    return mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(*key), tls_random, NULL);
}

static void print_time(uint64_t ms, char ret_text[X509_TIME_SIZE])
{
    time_t seconds = (time_t)(ms / 1000u);
    struct tm parts;

    CHECK(gmtime_r(&seconds, &parts) != NULL);
    CHECK(strftime(ret_text, X509_TIME_SIZE, "%Y%m%d%H%M%S", &parts) > 0);
}

static int set_serial(mbedtls_x509write_cert *crt)
{
    uint8_t bytes[SERIAL_SIZE];
    mbedtls_mpi serial;

    mbedtls_mpi_init(&serial);
    int code = tls_random(NULL, bytes, sizeof bytes);
    bytes[0] = (uint8_t)((bytes[0] & 0x7fu) | 0x40u); /* Positive and of full length. */
    if (code == 0)
        code = mbedtls_mpi_read_binary(&serial, bytes, sizeof bytes);
    if (code == 0)
        code = mbedtls_x509write_crt_set_serial(crt, &serial);
    mbedtls_mpi_free(&serial);
    return code;
}

static int set_validity(mbedtls_x509write_cert *crt, const struct recipe *recipe)
{
    char from[X509_TIME_SIZE], to[X509_TIME_SIZE];

    print_time(recipe->from_ms, from);
    print_time(recipe->to_ms, to);
    return mbedtls_x509write_crt_set_validity(crt, from, to);
}

/* RFC 5280 section 4.2. */
static int set_extensions(mbedtls_x509write_cert *crt, const struct recipe *recipe)
{
    static const uint8_t usage[] = { 0x30, 20,   0x06, 8,    0x2b, 0x06, 0x01, 0x05,
                                     0x05, 0x07, 0x03, 0x01, 0x06, 8,    0x2b, 0x06,
                                     0x01, 0x05, 0x05, 0x07, 0x03, 0x02 };
    int code =
        mbedtls_x509write_crt_set_basic_constraints(crt, recipe->is_ca, recipe->is_ca ? 0 : -1);
    if (code == 0)
        code = mbedtls_x509write_crt_set_key_usage(
            crt, recipe->is_ca ? MBEDTLS_X509_KU_KEY_CERT_SIGN | MBEDTLS_X509_KU_CRL_SIGN
                               : MBEDTLS_X509_KU_DIGITAL_SIGNATURE);
    if (code == 0)
        code = mbedtls_x509write_crt_set_subject_key_identifier(crt);
    if (code == 0)
        code = mbedtls_x509write_crt_set_authority_key_identifier(crt);
    if (code == 0 && !recipe->is_ca)
        code = mbedtls_x509write_crt_set_extension(crt, MBEDTLS_OID_EXTENDED_KEY_USAGE,
                                                   MBEDTLS_OID_SIZE(MBEDTLS_OID_EXTENDED_KEY_USAGE),
                                                   0, usage, sizeof usage);
    if (code == 0 && recipe->sans.size > 0)
        code = mbedtls_x509write_crt_set_extension(crt, MBEDTLS_OID_SUBJECT_ALT_NAME,
                                                   MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME),
                                                   0, recipe->sans.data, recipe->sans.size);
    return code;
}

static int sign(struct recipe *recipe, char *ret_crt_pem, char *ret_key_pem)
{
    struct pair *issuer = recipe->issuer != NULL ? recipe->issuer : recipe->subject;
    mbedtls_x509write_cert crt;

    mbedtls_x509write_crt_init(&crt);
    int code = make_key(&recipe->subject->key);
    mbedtls_x509write_crt_set_version(&crt, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(&crt, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(&crt, &recipe->subject->key);
    mbedtls_x509write_crt_set_issuer_key(&crt, &issuer->key);
    if (code == 0)
        code = mbedtls_x509write_crt_set_subject_name(&crt, recipe->subject_dn);
    if (code == 0)
        code = mbedtls_x509write_crt_set_issuer_name(&crt, recipe->issuer_dn);
    if (code == 0)
        code = set_serial(&crt);
    if (code == 0)
        code = set_validity(&crt, recipe);
    if (code == 0)
        code = set_extensions(&crt, recipe);
    if (code == 0)
        code = mbedtls_x509write_crt_pem(&crt, (unsigned char *)ret_crt_pem, PEM_OUT_SIZE,
                                         tls_random, NULL);
    if (code == 0)
        code = mbedtls_pk_write_key_pem(&recipe->subject->key, (unsigned char *)ret_key_pem,
                                        PEM_OUT_SIZE);
    mbedtls_x509write_crt_free(&crt);
    return code;
}

static err make_files(const char *directory, const char *stem, struct recipe *recipe,
                      struct tls_error *ret_error)
{
    char crt_path[CERTS_PATH_SIZE], key_path[CERTS_PATH_SIZE];
    char *pem = mem_zalloc(2 * PEM_OUT_SIZE);

    int code = sign(recipe, pem, pem + PEM_OUT_SIZE);
    if (code != 0) {
        struct tls_error why = tls_error_of(code);
        tls_error_set(ret_error, "%s: %.180s", stem, why.text);
        free(pem);
        return ERR_INVALID;
    }
    err e = make_path(directory, stem, ".crt", crt_path);
    if (e == ERR_OK)
        e = make_path(directory, stem, ".key", key_path);
    if (e == ERR_OK)
        e = write_file(key_path, pem + PEM_OUT_SIZE, 0600, ret_error);
    if (e == ERR_OK)
        e = write_file(crt_path, pem, 0644, ret_error);
    memset(pem, 0, 2 * PEM_OUT_SIZE);
    free(pem);
    return e;
}

/* ---- the CA ---- */

static err check_ca(const struct pair *ca, const char *directory, struct tls_error *ret_error)
{
    if (ca->crt.ca_istrue == 0) {
        tls_error_set(ret_error, "%.180s/ca.crt is not a CA", directory);
        return ERR_INVALID;
    }
    if (tls_time_ms(&ca->crt.valid_to) < now_ms()) {
        tls_error_set(ret_error, "%.180s/ca.crt has expired", directory);
        return ERR_INVALID;
    }
    return ERR_OK;
}

err certs_make_ca(const char *directory, const char *cluster, bool *ret_made,
                  struct tls_error *ret_error)
{
    struct pair ca;

    *ret_made = false;
    err e = check_name("cluster", cluster, ret_error);
    if (e != ERR_OK)
        return e;
    if (mkdir(directory, 0700) != 0 && errno != EEXIST) {
        tls_error_set(ret_error, "%.180s: %s", directory, strerror(errno));
        return ERR_IO;
    }
    pair_init(&ca);
    e = pair_load(directory, "ca", &ca, ret_error);
    if (e == ERR_OK)
        e = check_ca(&ca, directory, ret_error);
    else if (e == ERR_NOT_FOUND) {
        struct recipe recipe = { .subject = &ca, .is_ca = true };
        recipe.from_ms = now_ms() - HOUR_MS;
        recipe.to_ms = now_ms() + (uint64_t)CERTS_CA_DAYS * DAY_MS;
        snprintf(recipe.subject_dn, DN_SIZE, "CN=%s CA,O=holdfast", cluster);
        snprintf(recipe.issuer_dn, DN_SIZE, "%s", recipe.subject_dn);
        e = make_files(directory, "ca", &recipe, ret_error);
        *ret_made = e == ERR_OK;
    }
    pair_deinit(&ca);
    return e;
}

/* ---- leaves ---- */

static err append_san(struct buf *der, const char *name, struct tls_error *ret_error)
{
    uint8_t address[16];
    size_t size = strlen(name);

    if (inet_pton(AF_INET, name, address) == 1) {
        buf_put_u8(der, 0x87); /* iPAddress */
        buf_put_u8(der, 4);
        buf_append(der, address, 4);
        return ERR_OK;
    }
    if (inet_pton(AF_INET6, name, address) == 1) {
        buf_put_u8(der, 0x87);
        buf_put_u8(der, 16);
        buf_append(der, address, 16);
        return ERR_OK;
    }
    if (size == 0 || size > SAN_SIZE_MAX) {
        tls_error_set(ret_error, "name of %zu bytes; the limit is %u", size, SAN_SIZE_MAX);
        return ERR_INVALID;
    }
    buf_put_u8(der, 0x82); /* dNSName */
    buf_put_u8(der, (uint8_t)size);
    buf_append(der, name, size);
    return ERR_OK;
}

static err append_uri(struct buf *der, const char *uri, struct tls_error *ret_error)
{
    size_t size = strlen(uri);

    if (size == 0 || size > SAN_URI_SIZE_MAX) {
        tls_error_set(ret_error, "URI of %zu bytes; the limit is %u", size, SAN_URI_SIZE_MAX);
        return ERR_INVALID;
    }
    buf_put_u8(der, 0x86); /* uniformResourceIdentifier */
    if (size >= 128)
        buf_put_u8(der, 0x81);
    buf_put_u8(der, (uint8_t)size);
    buf_append(der, uri, size);
    return ERR_OK;
}

/* The SubjectAltName extension. */
static err make_sans(const struct certs_leaf *leaf, struct buf *ret_der,
                     struct tls_error *ret_error)
{
    static const char *const always[] = { "localhost", "127.0.0.1", "::1" };
    struct buf names = { 0 };
    err e = append_san(&names, leaf->name, ret_error);

    for (size_t i = 0; e == ERR_OK && i < ARRAY_SIZE(always); i++)
        e = append_san(&names, always[i], ret_error);
    for (size_t i = 0; e == ERR_OK && leaf->sans != NULL && leaf->sans[i] != NULL; i++) {
        if (i == CERTS_SAN_COUNT_MAX) {
            tls_error_set(ret_error, "more than %u names", CERTS_SAN_COUNT_MAX);
            e = ERR_INVALID;
        } else {
            e = append_san(&names, leaf->sans[i], ret_error);
        }
    }
    if (e == ERR_OK && leaf->uri != NULL)
        e = append_uri(&names, leaf->uri, ret_error);
    if (e == ERR_OK) {
        buf_put_u8(ret_der, 0x30); /* SEQUENCE, length in two bytes */
        buf_put_u8(ret_der, names.size < 128 ? (uint8_t)names.size : 0x82);
        if (names.size >= 128)
            buf_put_u16_be(ret_der, (uint16_t)names.size);
        buf_append(ret_der, names.data, names.size);
    }
    buf_deinit(&names);
    return e;
}

static bool is_good_leaf(struct pair *leaf, struct pair *ca, struct slice sans)
{
    uint32_t flags = 0;
    uint64_t needed_ms = now_ms() + (uint64_t)CERTS_RENEW_DAYS * DAY_MS;

    return mbedtls_x509_crt_verify(&leaf->crt, &ca->crt, NULL, NULL, &flags, NULL, NULL) == 0 &&
           tls_time_ms(&leaf->crt.valid_to) > needed_ms &&
           memmem(leaf->crt.v3_ext.p, leaf->crt.v3_ext.len, sans.data, sans.size) != NULL;
}

static err make_leaf(const char *directory, const struct certs_leaf *leaf, struct pair *ca,
                     struct slice sans, struct tls_error *ret_error)
{
    struct pair made;
    struct recipe recipe = { .subject = &made, .issuer = ca, .sans = sans };
    bool dated = leaf->not_before_ms != 0 || leaf->not_after_ms != 0;

    recipe.from_ms = dated ? leaf->not_before_ms : now_ms() - HOUR_MS;
    recipe.to_ms = dated ? leaf->not_after_ms : now_ms() + (uint64_t)CERTS_LEAF_DAYS * DAY_MS;
    if (mbedtls_x509_dn_gets(recipe.issuer_dn, DN_SIZE, &ca->crt.subject) < 0) {
        tls_error_set(ret_error, "the name of the CA is over %u bytes", DN_SIZE);
        return ERR_INVALID;
    }
    snprintf(recipe.subject_dn, DN_SIZE, "CN=%s,O=holdfast", leaf->name);
    pair_init(&made);
    err e = make_files(directory, leaf->name, &recipe, ret_error);
    pair_deinit(&made);
    return e;
}

err certs_make_leaf(const char *directory, const struct certs_leaf *leaf, bool *ret_made,
                    struct tls_error *ret_error)
{
    struct pair ca, old;
    struct buf sans = { 0 };

    *ret_made = false;
    err e = check_name("name", leaf->name, ret_error);
    if (e == ERR_OK && strcmp(leaf->name, "ca") == 0) {
        tls_error_set(ret_error, "name 'ca' belongs to the CA");
        e = ERR_INVALID;
    }
    if (e != ERR_OK)
        return e;
    pair_init(&ca);
    pair_init(&old);
    e = pair_load(directory, "ca", &ca, ret_error);
    if (e == ERR_OK)
        e = check_ca(&ca, directory, ret_error);
    if (e == ERR_OK)
        e = make_sans(leaf, &sans, ret_error);
    if (e == ERR_OK && (pair_load(directory, leaf->name, &old, ret_error) != ERR_OK ||
                        !is_good_leaf(&old, &ca, buf_slice(&sans)))) {
        e = make_leaf(directory, leaf, &ca, buf_slice(&sans), ret_error);
        *ret_made = e == ERR_OK;
    }
    buf_deinit(&sans);
    pair_deinit(&old);
    pair_deinit(&ca);
    return e;
}
