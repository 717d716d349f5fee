/*
 * http_fuzz: a connection to the public endpoint, byte for byte: HTTP/1.1 or HTTP/2, whatever the
 * bytes say. The first byte: lowest two bits what the handlers do, the next three how large the
 * pieces are that the bytes come in.
 */
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/http_drive.h"

void fuzz_one(struct slice input)
{
    static const size_t pieces[] = { SIZE_MAX, 1, 2, 9, 24, 100, 1000, 16384 };
    size_t at = 1;

    if (input.size == 0)
        return;
    size_t piece = pieces[(input.data[0] >> 2) % ARRAY_SIZE(pieces)];
    struct drive *drive = drive_open((enum drive_answer)(input.data[0] % DRIVE_ANSWER_END));
    while (at < input.size) {
        size_t left = input.size - at;
        struct slice part = { input.data + at, left < piece ? left : piece };
        drive_send(drive, part);
        at += part.size;
    }
    drive_close(drive);
}

#define POST(body, size)                                                                           \
    "POST /holdfast.v1.LedgerService/GetBalances HTTP/1.1\r\nHost: x\r\n"                          \
    "Content-Type: application/json\r\nContent-Length: " size "\r\n\r\n" body
#define PLAYER "{\"playerId\":\"42\"}"

/* Preface, SETTINGS, and one POST with a literal header block. */
#define H2_PREFACE  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define H2_SETTINGS "\0\0\0\4\0\0\0\0\0"
#define H2_PING                                                                                    \
    "\0\0\x08\6\0\0\0\0\0"                                                                         \
    "12345678"
#define H2_HEADERS                                                                                 \
    "\0\0\x4c\1\4\0\0\0\1"                                                                         \
    "\x83\x86\x41\x01x\x04\x2c/holdfast.v1.LedgerService/GetBalances\0\0\0"                        \
    "\x5f\x10"                                                                                     \
    "application/grpc"

void fuzz_seed(struct fuzz_seeds *seeds)
{
    static const char *const names[] = { "reply", "fail", "keep", "stream" };

    for (uint8_t i = 0; i < DRIVE_ANSWER_END; i++)
        fuzz_seed_add_kind(seeds, names[i], i,
                           SLICE_LITERAL(POST(PLAYER, "17") POST(PLAYER, "17")));
    fuzz_seed_add_kind(seeds, "bytes", 1 << 2, SLICE_LITERAL(POST(PLAYER, "17")));
    fuzz_seed_add_kind(
        seeds, "chunked", 0,
        SLICE_LITERAL("POST /holdfast.v1.LedgerService/GetBalances HTTP/1.1\r\nhost: x\r\n"
                      "content-type: application/json\r\ntransfer-encoding: chunked\r\n"
                      "expect: 100-continue\r\n\r\n2;a=b\r\n{}\r\n0\r\nx: y\r\n\r\n"));
    fuzz_seed_add_kind(seeds, "health", 0,
                       SLICE_LITERAL("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
                                     "HEAD /healthz?a=b HTTP/1.0\r\nConnection: close\r\n\r\n"));
    fuzz_seed_add_kind(seeds, "rest", 0,
                       SLICE_LITERAL("GET /v1/players/ada/items?limit=1 HTTP/1.1\r\nHost: x\r\n\r\n"
                                     "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"));
    fuzz_seed_add_kind(seeds, "smuggle", 0,
                       SLICE_LITERAL("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                                     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
    fuzz_seed_add_kind(seeds, "preflight", 0,
                       SLICE_LITERAL("OPTIONS * HTTP/1.1\r\nHost: x\r\n"
                                     "Origin: https://game.example\r\n"
                                     "Access-Control-Request-Method: POST\r\n\r\n"));
    fuzz_seed_add_kind(seeds, "h2", 0, SLICE_LITERAL(H2_PREFACE H2_SETTINGS H2_PING H2_HEADERS));
    fuzz_seed_add_kind(seeds, "h2-bytes", 3 << 2, SLICE_LITERAL(H2_PREFACE H2_SETTINGS H2_PING));
}
