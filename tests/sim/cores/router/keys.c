/*
 * Whose key, or whose token, a caller brings (router/core/key_table.h, player_tokens.h): of what
 * was issued and not revoked, at its time, and never by what a former text was.
 */
#include <stdio.h>
#include <string.h>

#include "router/core/key_table.h"
#include "router/core/player_tokens.h"
#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/crypto/hmac.h"
#include "tests/sim/cores/rsim.h"

#define KEYS      12u
#define CLUSTER   "sim"
#define WALL_S    1700000000u
#define SUBJECTS  5u
#define SKEW_S    30u
#define KEY_TEXTS 2u

/* ---- API keys ---- */

struct key {
    char text[API_KEY_TEXT_SIZE];
    struct api_key_record record;
    bool there;
    bool found; /* Since the table last changed. */
};

struct ring {
    struct key_table *table;
    struct key keys[KEYS];
    uint64_t now_ms;
    uint32_t there;
};

static void key_make(struct rsim *sim, struct key *key)
{
    uint8_t secret[API_KEY_SECRET_BYTES];

    *key = (struct key){ .there = false };
    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (uint8_t)rsim_next(sim);
    key->record.scopes = (uint32_t)rsim_between(sim, 1, SCOPES_ALL);
    (void)snprintf(key->record.name, sizeof key->record.name, "k");
    api_key_print(secret, key->text);
    api_key_digest(CLUSTER, secret, key->record.digest);
    api_key_id(key->record.digest, key->record.id);
}

/* A key of no text that anybody has, whose place in the table is that of another one. */
static void key_collide(struct rsim *sim, struct key *key, const struct key *other)
{
    key_make(sim, key);
    memcpy(key->record.digest, other->record.digest, 2); /* As many decide its place. */
    api_key_id(key->record.digest, key->record.id);
    key->record.id[API_KEY_ID_SIZE - 1] = 0;
    key->text[0] = 0;
}

static void table_changed(struct ring *ring)
{
    for (uint32_t i = 0; i < KEYS; i++)
        ring->keys[i].found = false;
}

static void find_one(struct rsim *sim, struct ring *ring, struct key *key)
{
    struct slice text = slice_from_text(key->text);
    bool expired = key->record.expires_at_ms != 0 && ring->now_ms >= key->record.expires_at_ms;
    enum key_found wanted = !key->there ? KEY_UNKNOWN : expired ? KEY_EXPIRED : KEY_FOUND;
    struct key_entry *entry = NULL;

    if (key->text[0] == 0)
        wanted = KEY_MISSING;
    PROMISE(sim, !key_table_remembers(ring->table, text) || key->found,
            "a text is remembered that was not found since the table changed");
    enum key_found found = key_table_find(ring->table, text, ring->now_ms, &entry);
    PROMISE(sim, found == wanted, "a key is %d, not %d", (int)found, (int)wanted);
    sim->counts.keys_expired += found == KEY_EXPIRED;
    if (found == KEY_FOUND || found == KEY_EXPIRED) {
        PROMISE(sim, key_table_remembers(ring->table, text), "a key is not remembered");
        key->found = true;
    }
    if (found != KEY_FOUND)
        return;
    sim->counts.keys_found++;
    sim->counts.keys_recalled += key->found;
    PROMISE(sim, memcmp(&entry->record, &key->record, sizeof key->record) == 0,
            "the rights of another key, or former ones");
}

/* Nearly a key, which may be remembered. */
static void find_nearly(struct rsim *sim, struct ring *ring, const struct key *key)
{
    char text[API_KEY_TEXT_SIZE + 1];
    size_t size = strlen(key->text);
    struct key_entry *entry = NULL;

    if (size == 0)
        return;
    memcpy(text, key->text, size + 1);
    size_t at = rsim_chance(sim, 30) ? size - 1 : rsim_between(sim, 0, size - 1);
    if (rsim_chance(sim, 20))
        text[--size] = 0;
    else
        text[at] = text[at] == '0' ? '1' : '0';
    PROMISE(sim,
            key_table_find(ring->table, (struct slice){ (const uint8_t *)text, size }, ring->now_ms,
                           &entry) == KEY_UNKNOWN,
            "a text that is no key opens");
    PROMISE(sim, !key_table_remembers(ring->table, (struct slice){ (const uint8_t *)text, size }),
            "a text that is no key is remembered");
}

static void put_one(struct rsim *sim, struct ring *ring, struct key *key)
{
    if (rsim_chance(sim, 40)) {
        key->record.scopes = (uint32_t)rsim_between(sim, 1, SCOPES_ALL);
        key->record.expires_at_ms =
            rsim_chance(sim, 50) ? ring->now_ms + rsim_between(sim, 0, 3) : 0;
    }
    if (api_key_record_validate(&key->record, NULL) != ERR_OK)
        return;
    ring->there += !key->there;
    key->there = true;
    PROMISE(sim, key_table_put(ring->table, &key->record) == ERR_OK, "a key is not taken");
    table_changed(ring);
}

static void ring_step(struct rsim *sim, struct ring *ring)
{
    struct key *key = &RSIM_PICK(sim, ring->keys);
    uint64_t what = rsim_between(sim, 0, 99);

    ring->now_ms += rsim_between(sim, 0, 1);
    if (what < 15) {
        put_one(sim, ring, key);
    } else if (what < 22) {
        key_table_remove(ring->table, slice_from_text(key->record.id));
        ring->there -= key->there;
        key->there = false;
        table_changed(ring);
    } else if (what < 23) {
        key_table_clear(ring->table);
        for (uint32_t i = 0; i < KEYS; i++)
            ring->keys[i].there = false;
        ring->there = 0;
        table_changed(ring);
    } else if (what < 40) {
        find_nearly(sim, ring, key);
    } else {
        find_one(sim, ring, key);
    }
    PROMISE(sim, key_table_count(ring->table) == ring->there, "%u keys, not %u",
            key_table_count(ring->table), ring->there);
}

static void keys_run(struct rsim *sim)
{
    struct ring ring = { .table = key_table_new(CLUSTER, rsim_next(sim)), .now_ms = 1000 };

    for (uint32_t i = 0; i < KEYS; i++) {
        if (i % 3 == 2) {
            key_collide(sim, &ring.keys[i], &ring.keys[i - 1]);
            sim->counts.keys_collided++;
        } else {
            key_make(sim, &ring.keys[i]);
        }
    }
    for (uint32_t i = 0; i < 60; i++)
        ring_step(sim, &ring);
    key_table_check(ring.table);
    key_table_free(ring.table);
}

/* ---- players' tokens ---- */

/* Two keys of one service, of which one may go. */
static const char *const secrets[KEY_TEXTS] = {
    "c2VjcmV0IG9uZSBvZiB0aGUgc2VydmljZSwgMzIgYnl0ZXM",
    "c2VjcmV0IHR3byBvZiB0aGUgc2VydmljZSwgMzIgYnl0ZXM",
};

struct token {
    struct buf text;
    uint32_t key, subject;
    uint64_t ends_ms; /* With the skew. */
    bool forged, ours;
    bool proven; /* Since the keys were set last. */
};

struct service {
    struct player_tokens *tokens;
    bool known[KEY_TEXTS];
    uint64_t now_ms;
};

static void keys_set(struct rsim *sim, struct service *service)
{
    struct buf json = { 0 };
    struct jwk_set set;
    struct jwk_why why;
    uint32_t count = 0;

    buf_printf(&json, "{\"keys\":[");
    for (uint32_t i = 0; i < KEY_TEXTS; i++) {
        service->known[i] = rsim_chance(sim, 75);
        if (service->known[i])
            buf_printf(&json, "%s{\"kty\":\"oct\",\"alg\":\"HS256\",\"kid\":\"k%u\",\"k\":\"%s\"}",
                       count++ > 0 ? "," : "", i, secrets[i]);
    }
    buf_printf(&json, "]}");
    CHECK(jwk_set_read(buf_slice(&json), true, &set, &why) == ERR_OK);
    buf_deinit(&json);
    player_tokens_set_keys(service->tokens, &set);
    PROMISE(sim, player_tokens_keys(service->tokens) == count, "%u keys of players' tokens, not %u",
            player_tokens_keys(service->tokens), count);
}

static void token_make(struct rsim *sim, const struct service *service, struct token *token)
{
    uint8_t secret[128], mac[HMAC_BYTES];
    struct hmac_key key;
    size_t size;
    char claims[160], header[64];
    uint64_t exp_s = service->now_ms / 1000 - SKEW_S + rsim_between(sim, 0, 3);

    buf_clear(&token->text);
    token->key = (uint32_t)rsim_between(sim, 0, KEY_TEXTS - 1);
    token->subject = (uint32_t)rsim_between(sim, 0, SUBJECTS - 1);
    token->forged = rsim_chance(sim, 20);
    token->ours = rsim_chance(sim, 85);
    token->ends_ms = (exp_s + SKEW_S) * 1000;
    token->proven = false;
    (void)snprintf(claims, sizeof claims, "{\"exp\":%llu,\"aud\":\"%s\",\"sub\":\"p%u\",\"n\":%u}",
                   (unsigned long long)exp_s, token->ours ? "game" : "shop", token->subject,
                   (unsigned)rsim_between(sim, 0, 1000000));
    (void)snprintf(header, sizeof header, "{\"alg\":\"HS256\",\"kid\":\"k%u\"}", token->key);
    uint32_t signer = token->forged ? 1 - token->key : token->key;
    CHECK(base64_decode_url(slice_from_text(secrets[signer]), secret, &size));
    hmac_key_init(&key, (struct slice){ secret, size });
    base64_encode_url(slice_from_text(header), &token->text);
    buf_put_u8(&token->text, '.');
    base64_encode_url(slice_from_text(claims), &token->text);
    hmac_sign(&key, buf_slice(&token->text), mac);
    buf_put_u8(&token->text, '.');
    base64_encode_url((struct slice){ mac, sizeof mac }, &token->text);
}

static void told_player(struct rsim *sim, const struct token *token, const char *player)
{
    char name[8];

    (void)snprintf(name, sizeof name, "p%u", token->subject);
    PROMISE(sim, player != NULL && strcmp(player, name) == 0, "the token of %s opens %s", name,
            player);
}

static void token_use(struct rsim *sim, struct service *service, struct token *token)
{
    struct slice text = buf_slice(&token->text);
    const char *player = player_tokens_recall(service->tokens, text, service->now_ms);
    bool lives = service->now_ms < token->ends_ms;
    struct jwt_refusal refusal = { JWT_OK, NULL, NULL };
    enum jwt_fault fault;

    PROMISE(sim, player == NULL || (token->proven && lives), "a token is known that is not good");
    PROMISE(sim, player != NULL || !token->proven || !lives,
            "a token that was proven is forgotten");
    if (player != NULL) {
        told_player(sim, token, player);
        sim->counts.tokens_recalled++;
    }
    fault = player_tokens_read(service->tokens, text, service->now_ms, &refusal);
    if (!service->known[token->key] || !token->ours || !lives) {
        PROMISE(sim, fault != JWT_OK && refusal.fault == fault, "a token that is not good is read");
        return;
    }
    PROMISE(sim, fault == JWT_OK, "a good token is refused: %d", (int)fault);
    if (rsim_chance(sim, 10))
        return; /* The caller has gone before it was proven. */
    fault = player_tokens_prove(service->tokens, &player, &refusal);
    PROMISE(sim, (fault == JWT_OK) == !token->forged, "a signature counts, or does not");
    if (fault == JWT_OK) {
        told_player(sim, token, player);
        token->proven = true;
        sim->counts.tokens_proven++;
    } else {
        PROMISE(sim, fault == JWT_SIGNATURE && refusal.fault == JWT_SIGNATURE, "another fault");
        sim->counts.tokens_forged++;
    }
}

/* Eight places share a set, and so few tokens never lose theirs. */
static void tokens_run(struct rsim *sim)
{
    const struct jwt_rules rules = { .audience = "game", .issuer = "", .skew_ms = SKEW_S * 1000 };
    struct service service = { .tokens = player_tokens_new(&rules), .now_ms = WALL_S * 1000ull };
    struct token tokens[6] = { 0 };

    keys_set(sim, &service);
    for (size_t i = 0; i < ARRAY_SIZE(tokens); i++)
        token_make(sim, &service, &tokens[i]);
    for (uint32_t i = 0; i < 40; i++) {
        struct token *token = &RSIM_PICK(sim, tokens);

        if (rsim_chance(sim, 3)) {
            keys_set(sim, &service);
            for (size_t k = 0; k < ARRAY_SIZE(tokens); k++)
                tokens[k].proven = false;
        }
        if (rsim_chance(sim, 10))
            token_make(sim, &service, token);
        if (rsim_chance(sim, 10) && service.now_ms < token->ends_ms)
            service.now_ms = rsim_about(sim, token->ends_ms);
        token_use(sim, &service, token);
    }
    for (size_t i = 0; i < ARRAY_SIZE(tokens); i++)
        buf_deinit(&tokens[i].text);
    player_tokens_check(service.tokens);
    player_tokens_free(service.tokens);
}

void room_keys(struct rsim *sim)
{
    keys_run(sim);
    if (sim->seed % 2 == 0)
        tokens_run(sim);
}
