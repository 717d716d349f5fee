#include "runtime/http/http_state.h"

#include <time.h>

uint64_t http_now_ms(const struct http_server *server)
{
    return loop_now_ms(server->config.loop);
}

const char *http_date(struct http_server *server)
{
    uint64_t now_ms = http_now_ms(server);

    if (server->date[0] == 0 || now_ms - server->date_ms >= 1000) {
        time_t wall = (time_t)(loop_wall_ms() / 1000);
        struct tm tm;
        gmtime_r(&wall, &tm);
        strftime(server->date, sizeof server->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        server->date_ms = now_ms;
    }
    return server->date;
}

const char *http_peer(const struct http_exchange *exchange)
{
    return exchange->conn != NULL ? exchange->conn->peer : "";
}

void http_tell_stopped(struct http_server *server)
{
    if (!server->stopping || server->listener_open || server->conns != NULL)
        return;
    if (server->on_stopped != NULL)
        server->on_stopped(server->on_stopped_user);
}
