/*
 * http_budget: the memory that requests may take before they are answered: heads and bodies, in
 * all, of each address, key and connection. Counted in bytes allocated, spent before they are, and
 * given back with them (DESIGN section 11). For runtime/http and runtime/rpc.
 */
#ifndef RUNTIME_HTTP_HTTP_BUDGET_H
#define RUNTIME_HTTP_HTTP_BUDGET_H

#include "runtime/http/http_state.h"

/* The address of the connection has a share from now on. */
void http_budget_open(struct http_conn *conn);
/* After the connection's last exchange. */
void http_budget_close(struct http_conn *conn);

/* What the refusal of that reason says; its limit is the one in force for the exchange. */
struct http_refusal http_refusal_of(const struct http_server *server, enum http_refused why);
/* Counts a refusal, and logs at most one line a minute for each reason. */
void http_refusal_count(struct http_server *server, enum http_refused why, const char *peer);

/* ---- heads ---- */

/* Counts what the exchange's head and the exchange itself take now. False: past a budget, and
 * *ret_why says which; it is counted all the same until the exchange ends. */
bool http_head_charge(struct http_exchange *exchange, enum http_refused *ret_why);
/* The same for input of a connection that is held back. */
bool http_input_charge(struct http_conn *conn, enum http_refused *ret_why);
/* The head is no longer needed: frees it. Slices into it are void. */
void http_head_drop(struct http_exchange *exchange);
/* Keeps those headers alone if that frees much memory; slices into the head are void then. */
void http_head_keep(struct http_exchange *exchange, const char *const *names, size_t count);

/* ---- bodies ---- */

/* Whether a body of so many bytes is within its limit. */
bool http_body_fits(const struct http_exchange *exchange, uint64_t size);
/* Whose share the body takes: the API key of that name (not 0); `keyless`: of a caller without
 * a key, all of whose bodies have a small budget together. Before any byte of it. */
void http_body_owner(struct http_exchange *exchange, uint64_t key, bool keyless);
/* False: past a budget, *ret_why says which, and nothing was added. While the budget of all is
 * full, bodies that came more slowly than this one are refused to make room. */
bool http_body_append(struct http_exchange *exchange, struct slice bytes,
                      enum http_refused *ret_why);
/* Gives the body another content, which is copied. False as http_body_append. */
bool http_body_replace(struct http_exchange *exchange, struct slice bytes,
                       enum http_refused *ret_why);
/* Counts `size` bytes more that were made of the body, until the exchange ends. */
bool http_body_charge_more(struct http_exchange *exchange, size_t size, enum http_refused *ret_why);
/* No more of it comes: it cannot be refused for slowness any more. */
void http_body_received(struct http_exchange *exchange);
/* Frees the body's bytes. Slices into it are void; what was charged more stays. */
void http_body_drop(struct http_exchange *exchange);
/* A new exchange of a connection: its share. */
void http_budget_join(struct http_exchange *exchange);
/* Its connection is about to go: counts on for its address alone. */
void http_budget_leave(struct http_exchange *exchange);
/* All that the exchange holds of budgets. */
void http_budget_release(struct http_exchange *exchange);

/* ---- the system's memory ---- */

/* Now and then: gives freed memory back to the system after much of it was freed. */
void http_budget_tick(struct http_server *server, uint64_t now_ms);

#endif
