#include "runtime/tls/tls_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <mbedtls/aesni.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>

int tls_random(void *unused, unsigned char *ret_bytes, size_t size)
{
    (void)unused;
    for (size_t filled = 0; filled < size;) {
        ssize_t got = getrandom(ret_bytes + filled, size - filled, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return MBEDTLS_ERR_ENTROPY_SOURCE_FAILED;
        filled += (size_t)got;
    }
    return 0;
}

void tls_error_set(struct tls_error *ret_error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret_error->text, sizeof ret_error->text, format, args);
    va_end(args);
}

struct tls_error tls_error_of(int code)
{
    struct tls_error error = { "" };

    mbedtls_strerror(code, error.text, sizeof error.text);
    return error;
}

err tls_file_read(const char *path, struct buf *ret_text, struct tls_error *ret_error)
{
    FILE *file = fopen(path, "rbe");

    if (file == NULL) {
        err result = errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
        tls_error_set(ret_error, "%s: %s", path, strerror(errno));
        return result;
    }
    size_t got = 0;
    do {
        uint8_t *at = buf_reserve(ret_text, 4096);
        got = fread(at, 1, 4096, file);
        ret_text->size += got;
    } while (got > 0 && ret_text->size <= TLS_PEM_SIZE_MAX);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed) {
        tls_error_set(ret_error, "%s: cannot be read", path);
        return ERR_IO;
    }
    if (ret_text->size > TLS_PEM_SIZE_MAX) {
        tls_error_set(ret_error, "%s: over the limit of %u bytes", path, TLS_PEM_SIZE_MAX);
        return ERR_TOO_LARGE;
    }
    buf_put_u8(ret_text, 0);
    return ERR_OK;
}

uint64_t tls_time_ms(const mbedtls_x509_time *time)
{
    struct tm parts = { .tm_year = time->year - 1900,
                        .tm_mon = time->mon - 1,
                        .tm_mday = time->day,
                        .tm_hour = time->hour,
                        .tm_min = time->min,
                        .tm_sec = time->sec };
    time_t seconds = timegm(&parts);

    return seconds > 0 ? (uint64_t)seconds * 1000u : 0;
}

bool tls_has_fast_aes(void)
{
#if defined(MBEDTLS_AESNI_C) && defined(MBEDTLS_HAVE_X86_64)
    return mbedtls_aesni_has_support(MBEDTLS_AESNI_AES) != 0;
#else
    return false;
#endif
}
