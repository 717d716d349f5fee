#include "runtime/jwt/jwt_claims.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/utf8.h"
#include "runtime/jwt/jwt_json.h"

#define SECONDS_MAX 253402300799.0 /* The end of the year 9999. */

/* A NumericDate: seconds, perhaps with a fraction. False: it is something else. */
static bool read_date(const json_t *claims, const char *name, uint64_t *ret_ms)
{
    const json_t *value = json_object_get(claims, name);
    double seconds = json_number_value(value);

    if (!json_is_number(value) || !(seconds >= 0 && seconds <= SECONDS_MAX))
        return false;
    *ret_ms = (uint64_t)(seconds * 1000);
    return true;
}

static enum jwt_fault read_dates(const json_t *claims, struct jwt_claims *ret_claims,
                                 struct jwt_refusal *ret_refusal)
{
    static const char *const names[] = { "nbf", "iat" };

    if (!read_date(claims, "exp", &ret_claims->expires_ms))
        return jwt_refuse(ret_refusal, JWT_FORM, "exp", "seconds since 1970; it is required");
    ret_claims->not_before_ms = 0;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint64_t from_ms = 0;
        if (!jwt_json_has(claims, names[i]))
            continue;
        if (!read_date(claims, names[i], &from_ms))
            return jwt_refuse(ret_refusal, JWT_FORM, names[i], "seconds since 1970");
        if (from_ms > ret_claims->not_before_ms)
            ret_claims->not_before_ms = from_ms;
    }
    return JWT_OK;
}

/* "aud" is a text, or a list of texts. */
static enum jwt_fault check_audience(const json_t *claims, const char *audience,
                                     struct jwt_refusal *ret_refusal)
{
    const json_t *list = json_object_get(claims, "aud");
    const json_t *one;
    size_t i;
    bool found = json_is_string(list) &&
                 slice_equal(jwt_json_text(claims, "aud"), slice_from_text(audience));

    if (!json_is_string(list) && !json_is_array(list))
        return jwt_refuse(ret_refusal, list == NULL ? JWT_AUDIENCE : JWT_FORM, "aud",
                          "a text or a list of texts; it is required");
    json_array_foreach(list, i, one)
    {
        if (!json_is_string(one))
            return jwt_refuse(ret_refusal, JWT_FORM, "aud", "a text or a list of texts");
        found = found || strcmp(json_string_value(one), audience) == 0;
    }
    return found ? JWT_OK
                 : jwt_refuse(ret_refusal, JWT_AUDIENCE, "aud", "the router's --player-audience");
}

/* No control characters of ASCII or of Latin-1, as in every player's id. */
static bool has_control(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < 0x20 || text.data[i] == 0x7f ||
            (text.data[i] == 0xc2 && i + 1 < text.size && text.data[i + 1] < 0xa0))
            return true;
    }
    return false;
}

static enum jwt_fault read_subject(const json_t *claims, struct jwt_claims *ret_claims,
                                   struct jwt_refusal *ret_refusal)
{
    struct slice subject = jwt_json_text(claims, "sub");

    if (subject.size == 0 || subject.size > JWT_SUBJECT_BYTES_MAX || !utf8_valid(subject) ||
        has_control(subject))
        return jwt_refuse(ret_refusal, JWT_SUBJECT, "sub",
                          "a player's id: 1 to 100 bytes of UTF-8, no control characters");
    memcpy(ret_claims->subject, subject.data, subject.size);
    ret_claims->subject[subject.size] = 0;
    return JWT_OK;
}

static enum jwt_fault read_claims(const json_t *claims, const struct jwt_rules *rules,
                                  struct jwt_claims *ret_claims, struct jwt_refusal *ret_refusal)
{
    enum jwt_fault fault = read_dates(claims, ret_claims, ret_refusal);

    if (fault == JWT_OK)
        fault = check_audience(claims, rules->audience, ret_refusal);
    if (fault != JWT_OK)
        return fault;
    if (rules->issuer[0] != 0 &&
        !slice_equal(jwt_json_text(claims, "iss"), slice_from_text(rules->issuer)))
        return jwt_refuse(ret_refusal, JWT_ISSUER, "iss", "the router's --player-issuer");
    return read_subject(claims, ret_claims, ret_refusal);
}

enum jwt_fault jwt_claims_read(struct slice json, const struct jwt_rules *rules,
                               struct jwt_claims *ret_claims, struct jwt_refusal *ret_refusal)
{
    json_t *claims = jwt_json_read(json);
    enum jwt_fault fault;

    CHECK(rules->audience[0] != 0);
    if (claims == NULL)
        return jwt_refuse(ret_refusal, JWT_FORM, "claims",
                          "a JSON object, 8 deep at most, that names no member twice");
    fault = read_claims(claims, rules, ret_claims, ret_refusal);
    json_decref(claims);
    return fault;
}

static bool is_over(uint64_t expires_ms, const struct jwt_rules *rules, uint64_t wall_ms)
{
    CHECK(rules->skew_ms <= JWT_SKEW_MS_MAX);
    return wall_ms >= expires_ms + rules->skew_ms;
}

enum jwt_fault jwt_claims_check_time(const struct jwt_claims *claims, const struct jwt_rules *rules,
                                     uint64_t wall_ms, struct jwt_refusal *ret_refusal)
{
    if (is_over(claims->expires_ms, rules, wall_ms))
        return jwt_refuse(ret_refusal, JWT_EXPIRED, "exp", "a time that has not passed");
    if (claims->not_before_ms > wall_ms + rules->skew_ms)
        return jwt_refuse(ret_refusal, JWT_NOT_YET, "nbf and iat", "times that have passed");
    return JWT_OK;
}
