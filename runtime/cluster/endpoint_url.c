#include "runtime/cluster/endpoint_url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/utf8.h"

#define HTTP      "http://"
#define HTTPS     "https://"
#define HOST_MAX  253u
#define PORT_MAX  65535u
#define LOOPBACK4 127u

static bool is_host(struct slice host, bool bracketed)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

    if (host.size == 0 || host.size > HOST_MAX)
        return false;
    for (size_t i = 0; i < host.size; i++) {
        char c = (char)host.data[i];
        if (strchr(letters, c) == NULL && strchr(bracketed ? ":." : ".-_", c) == NULL)
            return false;
    }
    return true;
}

/* Of "", or ":443". */
static bool is_port(struct slice text)
{
    uint32_t port = 0;

    if (text.size == 0)
        return true;
    if (text.data[0] != ':' || text.size < 2 || text.size > 6)
        return false;
    for (size_t i = 1; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        port = port * 10 + (uint32_t)(text.data[i] - '0');
    }
    return port >= 1 && port <= PORT_MAX;
}

static bool is_named(struct slice host, const char *name)
{
    return host.size == strlen(name) && strncasecmp((const char *)host.data, name, host.size) == 0;
}

static bool is_loopback(struct slice host)
{
    char text[INET_ADDRSTRLEN] = { 0 };
    struct in_addr address;

    if (is_named(host, "localhost") || is_named(host, "::1"))
        return true;
    if (host.size >= sizeof text)
        return false;
    memcpy(text, host.data, host.size);
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == LOOPBACK4;
}

/* What stands between the scheme and the path or query. */
static struct slice authority_of(struct slice text, size_t scheme)
{
    size_t end = scheme;

    while (end < text.size && text.data[end] != '/' && text.data[end] != '?')
        end++;
    return (struct slice){ text.data + scheme, end - scheme };
}

static bool split(struct slice authority, struct slice *ret_host, struct slice *ret_port)
{
    bool bracketed = authority.size > 0 && authority.data[0] == '[';
    size_t begin = bracketed ? 1 : 0, end = begin;

    while (end < authority.size && authority.data[end] != (bracketed ? ']' : ':'))
        end++;
    if (bracketed && end == authority.size)
        return false;
    size_t behind = bracketed ? end + 1 : end;
    *ret_host = (struct slice){ authority.data + begin, end - begin };
    *ret_port = (struct slice){ authority.data + behind, authority.size - behind };
    return is_host(*ret_host, bracketed);
}

err endpoint_url_parse(struct slice text, struct endpoint_url *ret_url)
{
    struct endpoint_url url = { .tls = slice_begins_with(text, SLICE_LITERAL(HTTPS)) };
    struct slice port;

    if (text.size > ENDPOINT_URL_MAX || !ascii_is_visible(text) ||
        (!url.tls && !slice_begins_with(text, SLICE_LITERAL(HTTP))) ||
        memchr(text.data, '#', text.size) != NULL || memchr(text.data, '\\', text.size) != NULL)
        return ERR_INVALID;
    struct slice authority = authority_of(text, url.tls ? sizeof HTTPS - 1 : sizeof HTTP - 1);
    if (!split(authority, &url.host, &port) || !is_port(port))
        return ERR_INVALID;
    url.loopback = is_loopback(url.host);
    *ret_url = url;
    return ERR_OK;
}

static bool is_good4(uint32_t address, bool loopback)
{
    if (address >> 24 == LOOPBACK4)
        return loopback;
    return address != 0 && address >> 16 != 0xA9FEu && address >> 28 < 0xEu;
}

bool endpoint_address_is_good(const struct sockaddr *address, bool loopback)
{
    if (address->sa_family == AF_INET)
        return is_good4(ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr),
                        loopback);
    if (address->sa_family != AF_INET6)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(six)) {
        uint32_t four;
        memcpy(&four, six->s6_addr + 12, sizeof four);
        return is_good4(ntohl(four), loopback);
    }
    if (IN6_IS_ADDR_LOOPBACK(six))
        return loopback;
    return !IN6_IS_ADDR_UNSPECIFIED(six) && !IN6_IS_ADDR_LINKLOCAL(six) &&
           !IN6_IS_ADDR_MULTICAST(six);
}

static bool entry_has(struct slice entry, struct slice host)
{
    if (entry.size == 1 && entry.data[0] == '*')
        return true;
    if (entry.size > 2 && entry.data[0] == '*' && entry.data[1] == '.') {
        struct slice end = { entry.data + 1, entry.size - 1 };
        return host.size > end.size && strncasecmp((const char *)host.data + host.size - end.size,
                                                   (const char *)end.data, end.size) == 0;
    }
    return entry.size == host.size &&
           strncasecmp((const char *)entry.data, (const char *)host.data, host.size) == 0;
}

bool endpoint_host_is_listed(struct slice host, const char *list)
{
    while (*list != '\0') {
        size_t size = strcspn(list, ", ");
        struct slice entry = { (const uint8_t *)list, size };
        if (size > 0 && entry_has(entry, host))
            return true;
        list += size + (list[size] != '\0');
    }
    return false;
}
