#include "tests/fuzz/http_drive.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "runtime/base/check.h"

#define TURNS_MAX     1000u
#define STREAM_PIECES 64u

static void end(struct drive *drive, struct rpc_request *request)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    Holdfast__V1__ErrorDetail__About about = HOLDFAST__V1__ERROR_DETAIL__ABOUT__INIT;
    Holdfast__V1__ErrorDetail__Holder holder = HOLDFAST__V1__ERROR_DETAIL__HOLDER__INIT;

    if (drive->answer != DRIVE_FAIL) {
        rpc_reply_encoded(request, drive->reply);
        return;
    }
    detail.code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_SESSION_LOCKED;
    detail.message = text_lend("held \xc3\xa9%\n");
    detail.field = text_lend("f");
    detail.limit = text_lend("l");
    detail.value = text_lend("v");
    holder.incarnation = text_lend("1-100");
    about.holder = &holder;
    about.fact_case = HOLDFAST__V1__ERROR_DETAIL__ABOUT__FACT_HOLDER;
    detail.about = &about;
    detail.retry_after_ms = 100;
    rpc_fail(request, &detail);
}

static void end_stream(struct rpc_request *request)
{
    ProtobufCMessage *message =
        arena_zalloc(request->arena, request->method->response->sizeof_message);

    protobuf_c_message_init(request->method->response, message);
    for (unsigned i = 0; i < STREAM_PIECES && rpc_stream_send(request, message); i++)
        ;
    rpc_stream_end(request, NULL);
}

static bool is_stream(void *user, const struct method_info *method)
{
    const struct drive *drive = user;

    return drive->answer == DRIVE_STREAM && method->route == METHOD_READ;
}

static void end_any(struct drive *drive, struct rpc_request *request)
{
    if (request->streams)
        end_stream(request);
    else
        end(drive, request);
}

static void end_kept(struct drive *drive)
{
    while (drive->kept_count > 0)
        end_any(drive, drive->kept[--drive->kept_count]);
}

static void on_request(void *user, struct rpc_request *request)
{
    struct drive *drive = user;

    CHECK(request->message != NULL && request->peer != NULL && request->deadline_ms > 0);
    if (drive->kept_count == DRIVE_KEPT_MAX)
        end_kept(drive);
    if (drive->answer == DRIVE_KEEP || request->streams)
        drive->kept[drive->kept_count++] = request;
    else
        end(drive, request);
}

/* Some callers have a key with a share of its own, some are refused by their heads. */
static bool may_enter(void *user, struct rpc_request *request,
                      Holdfast__V1__ErrorDetail *ret_detail)
{
    (void)user;
    (void)ret_detail;
    request->account = request->api_key.size;
    return request->api_key.size != 3;
}

static void on_cancel(void *user, struct rpc_request *request)
{
    (void)user;
    CHECK(request->cancelled);
}

static void drive_start(struct drive *drive)
{
    struct rpc_server_config config = {
        .address = "127.0.0.1",
        .cors_origins = "https://game.example,http://localhost",
        .limits = { .body_bytes_max = 16384,
                    .buffered_bytes_max = 24576,
                    .heads_bytes_max = 131072,
                    .heads_connection_bytes_max = 65536,
                    .output_bytes_max = 65536,
                    .streams_max = 32 },
        .handlers = { .on_request = on_request,
                      .may_enter = may_enter,
                      .on_cancel = on_cancel,
                      .is_stream = is_stream,
                      .user = drive },
    };

    CHECK(loop_new(&drive->loop) == ERR_OK);
    config.loop = drive->loop;
    CHECK(rpc_server_new(&config, &drive->server) == ERR_OK);
}

struct drive *drive_open(enum drive_answer answer)
{
    static struct drive drive;
    int ends[2];

    if (drive.server == NULL)
        drive_start(&drive);
    drive.answer = answer;
    drive.reply = (struct slice){ 0 };
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    drive.fd = ends[0];
    rpc_server_adopt(drive.server, ends[1]);
    return &drive;
}

static void drain(struct drive *drive)
{
    uint8_t bytes[65536];
    ssize_t size;

    while ((size = recv(drive->fd, bytes, sizeof bytes, 0)) > 0)
        drive->answered_bytes += (uint64_t)size;
}

static void turn(struct drive *drive)
{
    (void)uv_run(loop_uv(drive->loop), UV_RUN_NOWAIT);
    drain(drive);
}

void drive_send(struct drive *drive, struct slice bytes)
{
    for (unsigned i = 0; bytes.size > 0 && i < TURNS_MAX; i++) {
        ssize_t sent = send(drive->fd, bytes.data, bytes.size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            return; /* Closed by the server. */
        if (sent > 0)
            bytes = (struct slice){ bytes.data + sent, bytes.size - (size_t)sent };
        turn(drive);
    }
    turn(drive); /* What it read is answered in the next round. */
    if (drive->kept_count > 0) {
        end_kept(drive);
        turn(drive);
    }
}

void drive_close(struct drive *drive)
{
    const struct http_stats *stats = rpc_server_stats(drive->server);

    (void)shutdown(drive->fd, SHUT_WR);
    for (unsigned i = 0; stats->connections > 0 && i < TURNS_MAX; i++)
        turn(drive);
    end_kept(drive);
    CHECK(stats->connections == 0 && stats->requests_active == 0 && stats->buffered_bytes == 0 &&
          stats->head_bytes == 0);
    CHECK(close(drive->fd) == 0);
}
