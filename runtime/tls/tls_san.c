#include "runtime/tls/tls_san.h"

#include <mbedtls/x509_crt.h>

/* RFC 5280 section 4.2.1.6: the context-specific tags of a GeneralName. */
#define SAN_TAG_DNS 2u
#define SAN_TAG_URI 6u

size_t tls_sans_of(const mbedtls_x509_crt *crt, struct tls_san *ret_sans, size_t max)
{
    const mbedtls_x509_sequence *at = crt != NULL ? &crt->subject_alt_names : NULL;
    size_t count = 0;

    for (; at != NULL; at = at->next) {
        unsigned tag = (unsigned)at->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK;
        if (at->buf.p == NULL || (tag != SAN_TAG_DNS && tag != SAN_TAG_URI))
            continue;
        if (count < max)
            ret_sans[count] = (struct tls_san){ tag == SAN_TAG_URI, { at->buf.p, at->buf.len } };
        count++;
    }
    return count;
}
