#include "client/cli/debug/scrub.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "runtime/crypto/sha256.h"

#define DEPTH_MAX     16u
#define KEY_DIGITS    64u
#define HASH_BYTES    8u
#define NAME_SIZE     32u
#define ID_BYTES_MAX  256u
#define KEY_PREFIX    "hf_"
#define PEM_BEGIN     "-----BEGIN "
#define PEM_SECRET    "PRIVATE KEY-----"
#define PEM_END       "-----END "
#define REMOVED       "(removed)"
#define PASSWORD_SPAN 256u

/* "player-1f2e3d4c5b6a7988". */
static void hashed(const struct scrub *scrub, const char *kind, struct slice id,
                   char ret_name[NAME_SIZE])
{
    struct buf input = { 0 };
    uint8_t digest[32];
    size_t size;

    buf_append(&input, scrub->salt, sizeof scrub->salt);
    buf_append(&input, id.data, id.size);
    sha256_pair(buf_slice(&input), (struct slice){ 0 }, digest);
    buf_deinit(&input);
    size = (size_t)snprintf(ret_name, NAME_SIZE, "%s-", kind);
    CHECK(size + 2 * HASH_BYTES < NAME_SIZE);
    hex_print(digest, HASH_BYTES, ret_name + size);
}

static const char *at(const struct buf *text, size_t place)
{
    return (const char *)text->data + place;
}

static bool starts(const struct buf *text, size_t place, const char *with)
{
    size_t size = strlen(with);

    return text->size - place >= size && memcmp(at(text, place), with, size) == 0;
}

/* How many bytes an API key has that begins here; 0: none does. */
static size_t key_here(const struct scrub *scrub, const struct buf *text, size_t place)
{
    size_t digits = 0;

    if (scrub->api_key[0] != 0 && starts(text, place, scrub->api_key))
        return strlen(scrub->api_key);
    if (!starts(text, place, KEY_PREFIX))
        return 0;
    place += strlen(KEY_PREFIX);
    while (place + digits < text->size && isxdigit((unsigned char)*at(text, place + digits)))
        digits++;
    return digits >= KEY_DIGITS ? strlen(KEY_PREFIX) + digits : 0;
}

/* A private key from its first line to the end of its last, or of the text. */
static size_t pem_here(const struct buf *text, size_t place)
{
    size_t size = 0;

    if (!starts(text, place, PEM_BEGIN))
        return 0;
    const char *line_end = memchr(at(text, place), '\n', text->size - place);
    size_t line = line_end != NULL ? (size_t)(line_end - at(text, place)) : text->size - place;
    if (memmem(at(text, place), line, PEM_SECRET, strlen(PEM_SECRET)) == NULL)
        return 0;
    const char *end = memmem(at(text, place), text->size - place, PEM_END, strlen(PEM_END));
    if (end == NULL)
        return text->size - place;
    size = (size_t)(end - at(text, place)) + strlen(PEM_END);
    while (place + size < text->size && *at(text, place + size) != '\n')
        size++;
    return size;
}

/* After "://": "user:password@". */
static size_t password_here(const struct buf *text, size_t place)
{
    if (place < 3 || memcmp(at(text, place - 3), "://", 3) != 0)
        return 0;
    for (size_t i = 0; i < PASSWORD_SPAN && place + i < text->size; i++) {
        char c = *at(text, place + i);
        if (c == '@')
            return i;
        if (c == '/' || c == '"' || isspace((unsigned char)c))
            return 0;
    }
    return 0;
}

void scrub_secrets(const struct scrub *scrub, struct buf *text)
{
    struct buf clean = { 0 };

    for (size_t place = 0; place < text->size;) {
        size_t secret = key_here(scrub, text, place);
        if (secret == 0)
            secret = pem_here(text, place);
        if (secret == 0)
            secret = password_here(text, place);
        if (secret > 0)
            buf_append(&clean, REMOVED, strlen(REMOVED));
        else
            buf_append(&clean, at(text, place), 1);
        place += secret > 0 ? secret : 1;
    }
    buf_deinit(text);
    *text = clean;
}

static void note_player(struct scrub *scrub, const char *name)
{
    if (json_object_size(scrub->players) < SCRUB_PLAYERS_MAX && name[0] != 0)
        json_object_set_new(scrub->players, name, json_true());
}

static void scrub_id(struct scrub *scrub, json_t *object, const char *key, const char *kind)
{
    const char *id = json_string_value(json_object_get(object, key));
    char name[NAME_SIZE];

    if (id == NULL || id[0] == 0)
        return;
    if (scrub->redact) {
        hashed(scrub, kind, slice_from_text(id), name);
        json_object_set_new(object, key, json_string(name));
    }
    if (strcmp(kind, "player") == 0)
        note_player(scrub, json_string_value(json_object_get(object, key)));
}

struct level {
    json_t *value;
    uint32_t depth;
};

static void walk(struct scrub *scrub, struct level level)
{
    const char *key;
    json_t *child;
    size_t i;

    if (level.depth == DEPTH_MAX)
        return;
    json_array_foreach(level.value, i, child) walk(scrub, (struct level){ child, level.depth + 1 });
    if (!json_is_object(level.value))
        return;
    scrub_id(scrub, level.value, "playerId", "player");
    scrub_id(scrub, level.value, "opId", "op");
    json_object_foreach(level.value, key, child)
        walk(scrub, (struct level){ child, level.depth + 1 });
}

void scrub_json(struct scrub *scrub, json_t *value)
{
    walk(scrub, (struct level){ value, 0 });
}

/* How many bytes stand between here and the value of a player's field; 0: none begins here. */
static size_t field_here(const struct buf *text, size_t place, char *ret_end)
{
    static const char *const plain[] = { " player=", " player_id=" };
    static const char *const quoted[] = { "\"player\":\"", "\"player_id\":\"", "\"player\": \"",
                                          "player=\"" };

    *ret_end = '"';
    for (size_t i = 0; i < ARRAY_SIZE(quoted); i++) {
        if (starts(text, place, quoted[i]))
            return strlen(quoted[i]);
    }
    *ret_end = ' ';
    for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
        size_t size = strlen(plain[i]);
        if (starts(text, place, plain[i]) && place + size < text->size &&
            *at(text, place + size) != '"')
            return size;
    }
    return 0;
}

void scrub_log(struct scrub *scrub, struct buf *text)
{
    struct buf clean = { 0 };

    for (size_t place = 0; place < text->size;) {
        char end, name[ID_BYTES_MAX + 1];
        size_t head = field_here(text, place, &end);
        size_t size = 0;

        if (head == 0) {
            buf_append(&clean, at(text, place++), 1);
            continue;
        }
        buf_append(&clean, at(text, place), head);
        place += head;
        while (place + size < text->size && size < ID_BYTES_MAX && *at(text, place + size) != end &&
               *at(text, place + size) != '\n')
            size++;
        if (scrub->redact)
            hashed(scrub, "player", (struct slice){ text->data + place, size }, name);
        else
            snprintf(name, sizeof name, "%.*s", (int)size, at(text, place));
        note_player(scrub, name);
        buf_append(&clean, name, strlen(name));
        place += size;
    }
    buf_deinit(text);
    *text = clean;
}
