#include "runtime/crypto/signature.h"

#include <stdlib.h>

#include <mbedtls/ecdsa.h>
#include <mbedtls/ecp.h>
#include <mbedtls/rsa.h>

#include "runtime/base/check.h"

#define EXPONENT_BYTES_MAX 4u
#define POINT_BYTES        (1 + 2 * SIGNATURE_P256_BYTES)
#define POINT_UNCOMPRESSED 4u /* SEC 1, section 2.3.3 */

enum signature_kind { SIGNATURE_RSA, SIGNATURE_P256 };

struct signature_key {
    enum signature_kind kind;
    mbedtls_rsa_context rsa;
    mbedtls_ecp_group group;
    mbedtls_ecp_point point;
};

static struct signature_key *key_new(enum signature_kind kind)
{
    struct signature_key *key = mem_zalloc(sizeof *key);

    key->kind = kind;
    mbedtls_rsa_init(&key->rsa, MBEDTLS_RSA_PKCS_V15, MBEDTLS_MD_SHA256);
    mbedtls_ecp_group_init(&key->group);
    mbedtls_ecp_point_init(&key->point);
    return key;
}

void signature_key_free(struct signature_key *key)
{
    if (key == NULL)
        return;
    mbedtls_rsa_free(&key->rsa);
    mbedtls_ecp_group_free(&key->group);
    mbedtls_ecp_point_free(&key->point);
    free(key);
}

static struct slice without_zeros(struct slice number)
{
    while (number.size > 0 && number.data[0] == 0)
        number = (struct slice){ number.data + 1, number.size - 1 };
    return number;
}

/* NULL: it is one that we take. */
static const char *rsa_fault(struct slice modulus, struct slice exponent)
{
    uint64_t e = 0;
    size_t bits = modulus.size * 8;

    for (uint8_t top = modulus.size > 0 ? modulus.data[0] : 0xff; top != 0 && top < 0x80; bits--)
        top = (uint8_t)(top << 1);
    if (bits < SIGNATURE_RSA_BITS_MIN || bits > SIGNATURE_RSA_BITS_MAX)
        return "an RSA modulus has 2048 to 4096 bits";
    if ((modulus.data[modulus.size - 1] & 1) == 0)
        return "an RSA modulus is odd";
    for (size_t i = 0; i < exponent.size && i <= EXPONENT_BYTES_MAX; i++)
        e = e << 8 | exponent.data[i];
    if (exponent.size > EXPONENT_BYTES_MAX || e < SIGNATURE_RSA_EXPONENT_MIN || (e & 1) == 0)
        return "an RSA exponent is odd, and 65537 to 4294967295";
    return NULL;
}

err signature_key_new_rsa(struct slice modulus, struct slice exponent,
                          struct signature_key **ret_key, const char **ret_why)
{
    struct slice n = without_zeros(modulus);
    struct slice e = without_zeros(exponent);
    const char *fault = rsa_fault(n, e);
    struct signature_key *key;

    if (fault != NULL) {
        *ret_why = fault;
        return ERR_INVALID;
    }
    key = key_new(SIGNATURE_RSA);
    if (mbedtls_rsa_import_raw(&key->rsa, n.data, n.size, NULL, 0, NULL, 0, NULL, 0, e.data,
                               e.size) != 0 ||
        mbedtls_rsa_complete(&key->rsa) != 0 || mbedtls_rsa_check_pubkey(&key->rsa) != 0) {
        signature_key_free(key);
        *ret_why = "it is no RSA public key";
        return ERR_INVALID;
    }
    *ret_key = key;
    return ERR_OK;
}

err signature_key_new_p256(struct slice x, struct slice y, struct signature_key **ret_key,
                           const char **ret_why)
{
    uint8_t bytes[POINT_BYTES] = { POINT_UNCOMPRESSED };
    struct signature_key *key;

    if (x.size != SIGNATURE_P256_BYTES || y.size != SIGNATURE_P256_BYTES) {
        *ret_why = "a coordinate on P-256 has 32 bytes";
        return ERR_INVALID;
    }
    for (size_t i = 0; i < SIGNATURE_P256_BYTES; i++) {
        bytes[1 + i] = x.data[i];
        bytes[1 + SIGNATURE_P256_BYTES + i] = y.data[i];
    }
    key = key_new(SIGNATURE_P256);
    if (mbedtls_ecp_group_load(&key->group, MBEDTLS_ECP_DP_SECP256R1) != 0 ||
        mbedtls_ecp_point_read_binary(&key->group, &key->point, bytes, sizeof bytes) != 0 ||
        mbedtls_ecp_check_pubkey(&key->group, &key->point) != 0) {
        signature_key_free(key);
        *ret_why = "it is no point on P-256";
        return ERR_INVALID;
    }
    *ret_key = key;
    return ERR_OK;
}

static bool rsa_is_valid(struct signature_key *key, const uint8_t *hash, struct slice signature)
{
    return signature.size == mbedtls_rsa_get_len(&key->rsa) &&
           mbedtls_rsa_pkcs1_verify(&key->rsa, NULL, NULL, MBEDTLS_RSA_PUBLIC, MBEDTLS_MD_SHA256,
                                    SHA256_BYTES, hash, signature.data) == 0;
}

static bool p256_is_valid(struct signature_key *key, const uint8_t *hash, struct slice signature)
{
    mbedtls_mpi r, s;
    bool valid;

    if (signature.size != 2 * SIGNATURE_P256_BYTES)
        return false;
    mbedtls_mpi_init(&r);
    mbedtls_mpi_init(&s);
    valid = mbedtls_mpi_read_binary(&r, signature.data, SIGNATURE_P256_BYTES) == 0 &&
            mbedtls_mpi_read_binary(&s, signature.data + SIGNATURE_P256_BYTES,
                                    SIGNATURE_P256_BYTES) == 0 &&
            mbedtls_ecdsa_verify(&key->group, hash, SHA256_BYTES, &key->point, &r, &s) == 0;
    mbedtls_mpi_free(&r);
    mbedtls_mpi_free(&s);
    return valid;
}

bool signature_is_valid(struct signature_key *key, const uint8_t hash[SHA256_BYTES],
                        struct slice signature)
{
    return key->kind == SIGNATURE_RSA ? rsa_is_valid(key, hash, signature)
                                      : p256_is_valid(key, hash, signature);
}
