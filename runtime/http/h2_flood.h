/*
 * h2_flood: counts what a connection of HTTP/2 sends that costs us work and the client nothing:
 * frames that bring neither a request nor a body, of known types and of others, and streams that
 * end by a reset or are refused. Reads the heads of frames by itself, since nghttp2 says nothing of
 * those that it skips. Pure: time is told.
 */
#ifndef RUNTIME_HTTP_H2_FLOOD_H
#define RUNTIME_HTTP_H2_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define H2_FRAME_HEAD_BYTES 9u

/* How much of what may come at a rate has come. */
struct http_bucket {
    uint64_t since_ms;
    uint64_t spent_milli; /* Thousandths. */
};

/* A zeroed one is valid, at the connection's first byte. */
struct h2_flood {
    struct http_bucket controls;
    struct http_bucket resets;
    uint32_t window_updates; /* That may come for what was sent to the client, uncounted. */
    uint32_t payload_left;   /* Of the frame under way. */
    uint8_t preface_seen;    /* Bytes of it. */
    uint8_t head_size;       /* Of `head`. */
    uint8_t head[H2_FRAME_HEAD_BYTES];
};

struct h2_rates {
    uint64_t now_ms;
    uint32_t resets_per_s;
    uint32_t controls_per_s;
};

/* Bytes that came, the preface included. False: too many frames were control frames. */
bool h2_flood_receive(struct h2_flood *flood, const struct h2_rates *rates, struct slice bytes);
/* A frame of an answer's body was sent: the client may well tell that it read it. */
void h2_flood_sent_data(struct h2_flood *flood);
/* A stream ended by a reset, by either side. False: too many did. */
bool h2_flood_reset(struct h2_flood *flood, const struct h2_rates *rates);
/* A stream was refused before it began. False: too many control frames, as which it counts. */
bool h2_flood_refused(struct h2_flood *flood, const struct h2_rates *rates);

#endif
