/*
 * rest_openapi: the document that describes every REST route, OpenAPI 3.1. cmake/openapi.py makes
 * it of idl and of the shapes of plain JSON when the router is built.
 */
#ifndef RUNTIME_REST_REST_OPENAPI_H
#define RUNTIME_REST_REST_OPENAPI_H

#include "runtime/base/buf.h"

#define REST_OPENAPI_PATH "/openapi.json"

/* JSON; static. */
struct slice rest_openapi(void);
/* The same, by gzip. */
struct slice rest_openapi_packed(void);

#endif
