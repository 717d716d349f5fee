/*
 * Two game servers write one document without knowing of each other, and lose nothing: each keeps
 * the contexts of its answers and sends them with its next call. HOLDFAST_ENDPOINT names the
 * router; the first argument is a guild. The collection `example_rooms` has to be defined before:
 * holdfast define put documents example_rooms '{"policy": "vector"}' --wait-ms 20000
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "client/sdk/client.h"
#include "client/sdk/client_contexts.h"

#define DOCUMENTS_MAX 256
#define READS_MAX     50

struct server {
    struct client *client;
    struct client_contexts *contexts;
};

/* A restored cluster refuses contexts of before: the next call goes without one. */
static void drop_context(struct server *server, const struct client_document *document,
                         const struct buf *body)
{
    json_t *error = json_loadb((const char *)body->data, body->size, 0, NULL);
    const char *field =
        json_string_value(json_object_get(json_object_get(error, "error"), "field"));

    if (field != NULL && strcmp(field, "context") == 0)
        client_contexts_forget(server->contexts, document);
    json_decref(error);
}

/* Calls with the context of the document, and keeps that of the answer. NULL: it went wrong. */
static json_t *call(struct server *server, const char *method,
                    const struct client_document *document, json_t *request)
{
    json_t *answer = NULL;
    struct buf body = { 0 };

    json_object_update_new(request,
                           json_pack("{s:s, s:s, s:s, s:s}", "entity", document->entity,
                                     "collection", document->collection, "key", document->key,
                                     "context", client_contexts_get(server->contexts, document)));
    char *text = json_dumps(request, JSON_COMPACT);
    enum client_result result = client_call(server->client, method, text, &body);

    if (result == CLIENT_OK) {
        answer = json_loadb((const char *)body.data, body.size, 0, NULL);
    } else {
        fprintf(stderr, "%s: %.*s\n", method, (int)body.size, (const char *)body.data);
        if (result == CLIENT_REFUSED)
            drop_context(server, document, &body);
    }
    free(text);
    json_decref(request);
    buf_deinit(&body);

    const json_t *written = json_object_get(answer, "written");
    const char *context =
        json_string_value(json_object_get(written != NULL ? written : answer, "context"));

    if (context != NULL && client_contexts_keep(server->contexts, document, context) != ERR_OK)
        fprintf(stderr, "%s: the context is too long\n", method);
    return answer;
}

static bool put(struct server *server, const struct client_document *document, const char *at)
{
    char op_id[37];

    client_op_id(op_id);
    json_t *answer = call(server, "DocumentService/PutDocument", document,
                          json_pack("{s:s, s:{s:s}}", "opId", op_id, "json", "at", at));

    json_decref(answer);
    return answer != NULL;
}

static const char *at_of(const json_t *value)
{
    const char *at = json_string_value(json_object_get(json_object_get(value, "json"), "at"));

    return at != NULL ? at : "";
}

/* Another server's write comes to the member that is asked in a moment. NULL: it went wrong. */
static json_t *read_values(struct server *server, const struct client_document *document,
                           size_t count)
{
    for (int i = 0; i < READS_MAX; i++) {
        json_t *answer = call(server, "DocumentService/GetDocument", document, json_object());

        if (answer == NULL)
            return NULL;
        json_t *found = json_object_get(answer, "document");
        json_t *siblings = json_object_get(found, "siblings");
        json_t *values = siblings != NULL ? json_incref(siblings) : json_array();

        if (siblings == NULL && found != NULL)
            json_array_append(values, found);
        json_decref(answer);
        if (json_array_size(values) == count)
            return values;
        json_decref(values);
        nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000 * 1000 }, NULL);
    }
    fprintf(stderr, "%s: there are not %zu values\n", document->key, count);
    return NULL;
}

static bool print_values(const char *server, const json_t *values)
{
    const json_t *value;
    size_t i;

    json_array_foreach(values, i, value) printf("%s reads: %s\n", server, at_of(value));
    return values != NULL;
}

/* One value takes the place of all that the server has seen. */
static bool resolve(struct server *server, const struct client_document *document)
{
    json_t *values = read_values(server, document, 2);
    bool done = print_values("first", values) && put(server, document, "castle and harbour");

    json_decref(values);
    if (!done)
        return false;
    values = read_values(server, document, 1);
    done = print_values("first", values);
    json_decref(values);
    return done;
}

static bool meet(struct server *first, struct server *second,
                 const struct client_document *document)
{
    if (!put(first, document, "lobby"))
        return false;
    /* A context may travel: the second server has seen the lobby, too. */
    const char *seen = client_contexts_get(first->contexts, document);

    return client_contexts_keep(second->contexts, document, seen) == ERR_OK &&
           put(first, document, "castle") && put(second, document, "harbour") &&
           resolve(first, document);
}

static bool server_start(struct server *server)
{
    const char *endpoint = getenv("HOLDFAST_ENDPOINT");
    struct client_options options = {
        .endpoint = endpoint != NULL ? endpoint : "http://127.0.0.1:7400",
        .plain_json = true,
    };

    return client_new(&options, &server->client) == ERR_OK &&
           client_contexts_new(DOCUMENTS_MAX, &server->contexts) == ERR_OK;
}

static void server_stop(struct server *server)
{
    client_contexts_free(server->contexts);
    client_free(server->client);
}

int main(int argc, char **argv)
{
    struct client_document document = { argc > 1 ? argv[1] : "guild:7", "example_rooms", "hall" };
    struct server first = { 0 };
    struct server second = { 0 };
    bool done = server_start(&first) && server_start(&second) && meet(&first, &second, &document);

    server_stop(&second);
    server_stop(&first);
    return done ? 0 : 1;
}
