#!/usr/bin/env python3
"""Makes the OpenAPI document of the REST routes: openapi.py DESCRIPTOR_SET JSON_SHAPES VERSION OUT.json OUT.c

Of the same descriptors as the router's table, and of the same table of shapes as its codec: what differs between
plain JSON and the messages of idl stands in runtime/codec/json_shape.h alone. The errors of each method are those of
idl/method_errors.h, as tools/error_tables.py reads them for the pages in docs/.
"""

import gzip
import json
import os
import pathlib
import re
import sys

from descriptor_set import DescriptorSet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))

import error_tables  # noqa: E402

ROW = re.compile(r'X\("(?P<message>[\w.]+)",\s*"(?P<field>\w+)",\s*(?P<shape>\w+)\)')
MARK = re.compile(r"^\((?:document|key|value|list|verb|operand)\) ?")
VARIABLE = re.compile(r"\{(\w+)\}")
ERROR = "holdfast.v1.ErrorDetail"
ABOUT = """A store of players' state for game servers. Requests and answers are plain JSON; what is zero, empty or
false is left out of answers. Every mutation has an op_id, in its body or as the header Idempotency-Key: the same
request may be sent again, and is carried out once."""
HEADERS = {
    "IdempotencyKey": ("Idempotency-Key", "string", "The op_id, when the body has none. A text that is neither a UUIDv7 "
                       "nor a typed key stands for its operation for 24 hours."),
    "Authority": ("Holdfast-Authority", "string", "The authority, when the body has none: `session:<token>`, "
                  "`system:<scope>` or `unheld`."),
    "IfMatch": ("If-Match", "string", "The version that the entity must have, as an ETag told it; `\"0\"`: it must not "
                "exist. 412 when it has another one."),
    "IfNoneMatch": ("If-None-Match", "string", "ETags of answers that the caller has: 304 in place of one of them."),
    "Timeout": ("Connect-Timeout-Ms", "integer", "How long the caller waits, in milliseconds."),
}


def ref(kind, name):
    return {"$ref": f"#/components/{kind}/{name}"}


def short(full_name):
    """A type within another has the names of both: ErrorDetailAbout."""
    return full_name.removeprefix("holdfast.v1.").replace(".", "")


class Document:
    def __init__(self, image, shapes):
        self.image = image
        self.shapes = {(row["message"], row["field"]): row["shape"] for row in ROW.finditer(shapes)}
        self.schemas = {}
        self.used = set()  # Headers of requests that some route takes.
        self.errors = error_tables.errors()
        self.rules = error_tables.rules()
        self.statuses = error_tables.http_statuses()
        self.responses = {}  # What is answered with an error: equal ones once.

    def shape(self, message, shape):
        """The field of a message that has this shape, or None."""
        return next((field for field in message.fields if self.shapes.get((message.name, field.name)) == shape), None)

    # ---- schemas ----

    def enum_names(self, enum):
        """As the codec: without what its type's name makes of itself."""
        prefix = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", enum.name.rsplit(".", 1)[-1]).upper() + "_"
        return [(name.removeprefix(prefix).lower(), comment) for name, comment in enum.values]

    def enum(self, name):
        if short(name) not in self.schemas:
            names = self.enum_names(self.image.enums[name])
            told = "\n".join(f"- `{value}`: {' '.join(comment.split())}" for value, comment in names if comment)
            schema = {"type": "string", "enum": [value for value, _ in names]}
            comment = "\n\n".join(part for part in (self.image.enums[name].comment, told) if part)
            self.schemas[short(name)] = schema | ({"description": comment} if comment else {})
        return ref("schemas", short(name))

    def single(self, field):
        if field.type == "message":
            return self.message(field.type_name)
        if field.type == "enum":
            return self.enum(field.type_name)
        if field.type in ("int64", "uint64"):
            pattern = "^-?[0-9]+$" if field.type == "int64" else "^[0-9]+$"
            return {"type": ["integer", "string"], "format": field.type, "pattern": pattern}
        return {
            "int32": {"type": "integer", "format": "int32"},
            "uint32": {"type": "integer", "format": "uint32", "minimum": 0},
            "double": {"type": "number"},
            "float": {"type": "number"},
            "bool": {"type": "boolean"},
            "string": {"type": "string"},
            "bytes": {"type": "string", "contentEncoding": "base64"},
        }[field.type]

    def map_of(self, message):
        """A list of named things is an object."""
        value = self.shape(message, "VALUE")
        schema = self.message(message.name)
        if value is not None:
            alone = len(message.fields) == 2
            schema = self.single(value) if alone else {"anyOf": [self.single(value), schema]}
        return {"type": "object", "additionalProperties": schema}

    def field(self, message, field):
        if self.shapes.get((message.name, field.name)) == "DOCUMENT":
            schema = {}
        elif field.repeated and field.type == "message" and self.shape(self.image.messages[field.type_name], "KEY"):
            schema = self.map_of(self.image.messages[field.type_name])
        elif field.repeated:
            schema = {"type": "array", "items": self.single(field)}
        else:
            schema = self.single(field)
        comment = MARK.sub("", field.comment)
        return schema | ({"description": comment} if comment else {})

    def step(self, message, verb):
        """{"path": "/xp", "increment": 40}: the verb is the name of a member."""
        properties = {field.json_name: self.field(message, field) for field in message.fields
                      if self.shapes.get((message.name, field.name)) not in ("VERB", "OPERAND")}
        for number, (name, comment) in enumerate(self.enum_names(self.image.enums[verb.type_name])):
            if number == 0:
                continue
            properties[name] = ({"const": True} if name == "remove" else {}) | {"description": comment}
        return {"type": "object", "properties": properties}

    def message(self, name):
        if short(name) in self.schemas:
            return ref("schemas", short(name))
        message = self.image.messages[name]
        self.schemas[short(name)] = {}  # A message may hold itself.
        verb, whole = self.shape(message, "VERB"), self.shape(message, "LIST")
        if whole is not None:
            schema = self.field(message, whole)
        elif verb is not None:
            schema = self.step(message, verb)
        else:
            schema = {"type": "object",
                      "properties": {field.json_name: self.field(message, field) for field in message.fields}}
        if message.comment:
            schema = {"description": message.comment} | schema
        self.schemas[short(name)] = schema
        return ref("schemas", short(name))

    # ---- routes ----

    def queries(self, message, taken, prefix=""):
        """Parameters of the fields that fit a query."""
        for field in message.fields:
            if field.type == "message" and not field.repeated:
                yield from self.queries(self.image.messages[field.type_name], (), f"{prefix}{field.name}.")
            elif field.type != "message" and field.name not in taken:
                schema = self.field(message, field)
                found = {"name": prefix + field.name, "in": "query", "schema": schema}
                if "description" in schema:
                    found["description"] = schema.pop("description")
                yield found

    def header(self, name):
        self.used.add(name)
        return ref("parameters", name)

    def parameters(self, binding, request):
        method, taken = binding.method, VARIABLE.findall(binding.path)
        found = [{"name": name, "in": "path", "required": True, "schema": self.single(request.field(name))}
                 for name in taken]
        for each in found:
            comment = request.field(each["name"]).comment
            if comment:
                each["description"] = comment
        if binding.body == "":
            found += self.queries(request, taken)
        if not method.is_read and request.field("requests") is None:
            if request.field("op_id") is not None and "op_id" not in taken:
                found.append(self.header("IdempotencyKey"))
        if request.field("authority") is not None:
            found.append(self.header("Authority"))
        if request.field("if_version") is not None:
            found.append(self.header("IfMatch"))
        if self.may_be_known(binding):
            found.append(self.header("IfNoneMatch"))
        return found + [self.header("Timeout")]

    def has_tag(self, name):
        """As rest_tag_of() finds it."""
        fields = {field.name: field for field in self.image.messages[name].fields}
        return (bool({"write", "profile", "as_of"} & set(fields)) or
                getattr(fields.get("version"), "type", "") == "uint64" or
                getattr(fields.get("count"), "type", "") == "message" or
                name.rpartition(".")[2] in ("GetTopResponse", "GetCounterTopResponse"))

    def may_be_known(self, binding):
        return binding.verb == "GET" and self.has_tag(binding.method.response)

    # ---- errors ----

    def statuses_of(self, binding, row):
        """Of one row of the method's table."""
        method = binding.method
        yield self.statuses[row[0]]
        request = self.image.messages[method.request]
        if row[0] == "VERSION_CONFLICT" and request.field("if_version") is not None:
            yield 412
        if row[0] == "INVALID_ARGUMENT" and binding.body == "*":
            yield 415  # The body is said to be something else than JSON.

    def told(self, row):
        code, kind, when, what = row
        words = "; ".join(", ".join(word.lower() for word in self.rules[code].told(final))
                          for final in error_tables.KINDS[kind])
        return f"- `{code.lower()}` ({words}): {when}. {what[:1].upper() + what[1:]}."

    def error(self, status, rows):
        codes = sorted({row[0].lower() for row in rows})
        narrowed = {"properties": {"error": {"properties": {"code": {"enum": codes}}}}}
        response = {"description": "\n".join(self.told(row) for row in rows), "headers": self.error_headers(),
                    "content": {"application/json": {"schema": {"allOf": [ref("schemas", "Error"), narrowed]}}}}
        same = {name: found for name, found in self.responses.items() if name.startswith(f"Error{status}")}
        for name, found in same.items():
            if found == response:
                return ref("responses", name)
        name = f"Error{status}" + (f"_{len(same) + 1}" if same else "")
        self.responses[name] = response
        return ref("responses", name)

    def errors_of(self, binding):
        """Status -> response, for what the method may give, and the rest, which HTTP itself may."""
        method, found = binding.method, {}
        for row in self.errors[f"{short(method.service)}/{method.name}"]:
            for status in self.statuses_of(binding, row):
                found.setdefault(status, []).append(row)
        told = {str(status): self.error(status, rows) for status, rows in sorted(found.items())}
        return told | {"default": ref("responses", "Error")}

    @staticmethod
    def error_headers():
        return {name: {"description": told, "schema": {"type": "string"}} for name, told in (
            ("Holdfast-Error", "`error.code`."), ("Holdfast-Action", "`error.action`."),
            ("Retry-After", "Seconds to wait, of 429 and 503."))}

    def operation(self, binding):
        method, place = binding.method, binding.method.bindings.index(binding)
        request = self.image.messages[method.request]
        answer = {"description": "Carried out.",
                  "content": {"application/json": {"schema": self.message(method.response)}}}
        tag = {"headers": {"ETag": ref("headers", "ETag")}} if self.has_tag(method.response) else {}
        answers = {"200": answer | tag}
        if self.may_be_known(binding):
            answers["304"] = {"description": "If-None-Match has the ETag of what there is: nothing changed."} | tag
        comment = " ".join(method.comment.split())
        found = {"operationId": method.name + (f"_{place + 1}" if place else ""), "tags": [short(method.service).removesuffix("Service")],
                 "summary": re.split(r"(?<=[.;:]) ", comment)[0].rstrip(".;:"), "description": comment,
                 "parameters": self.parameters(binding, request)}
        if binding.body == "*":
            body = self.message(method.request)
            found["requestBody"] = {"required": False, "content": {"application/json": {"schema": body}}}
        return found | {"responses": answers | self.errors_of(binding)}

    def components(self):
        error = {"type": "object", "description": "The same in every error. A client switches on `error.action`.",
                 "required": ["code", "message", "error"],
                 "properties": {"code": {"type": "string", "description": "The code of gRPC and Connect."},
                                "message": {"type": "string"}, "error": self.message(ERROR)}}
        schemas = dict(sorted((self.schemas | {"Error": error}).items()))
        response = {"description": "What HTTP itself is refused for, before the method is known: a head that is "
                                   "malformed, too long or too slow. Nothing was done.",
                    "headers": self.error_headers(),
                    "content": {"application/json": {"schema": ref("schemas", "Error")}}}
        return {
            "schemas": schemas,
            "responses": dict(sorted((self.responses | {"Error": response}).items())),
            "headers": {"ETag": {"description": "The entity's version in quotes, for If-Match and If-None-Match; or, "
                                                "of a read that tells none, a weak tag for If-None-Match.",
                                 "schema": {"type": "string"}}},
            "parameters": {key: {"name": name, "in": "header", "schema": {"type": kind}, "description": told}
                           for key, (name, kind, told) in HEADERS.items() if key in self.used},
            "securitySchemes": {"Bearer": {"type": "http", "scheme": "bearer", "description": "An API key, or a player's token."}},
        }

    def make(self, version):
        paths, tags = {}, {}
        for binding in (each for method in self.image.methods for each in method.bindings):
            operation = self.operation(binding)
            paths.setdefault(binding.path, {})[binding.verb.lower()] = operation
            tags[operation["tags"][0]] = " ".join(self.image.services[binding.method.service].split())
        return {
            "openapi": "3.1.0",
            "info": {"title": "Holdfast", "version": version, "description": ABOUT.replace("\n", " ")},
            "servers": [{"url": "/", "description": "The router that serves this document."}],
            "security": [{"Bearer": []}, {}],
            "tags": [{"name": name, "description": told} for name, told in tags.items()],
            "paths": paths,
            "components": self.components(),
        }


def constant(name, data):
    rows = [",".join(str(byte) for byte in data[at:at + 64]) for at in range(0, len(data), 64)]
    return (f"static const uint8_t {name}_bytes[] = {{\n" + ",\n".join(rows) + "\n};\n\n"
            f"struct slice {name}(void)\n{{\n    return (struct slice){{ {name}_bytes, sizeof {name}_bytes }};\n}}\n")


def source(data):
    packed = gzip.compress(data, 9, mtime=0)  # Once: any stranger may ask for it.
    return ("/* Made of idl by cmake/openapi.py. */\n#include \"runtime/rest/rest_openapi.h\"\n\n" +
            constant("rest_openapi", data) + "\n" + constant("rest_openapi_packed", packed))


def main():
    image, shapes, version, document, code = sys.argv[1:]
    found = Document(DescriptorSet(pathlib.Path(image)), pathlib.Path(shapes).read_text(encoding="utf-8"))
    text = json.dumps(found.make(version), separators=(",", ":"), ensure_ascii=True)
    pathlib.Path(document).write_text(text + os.linesep, encoding="utf-8")
    pathlib.Path(code).write_text(source(text.encode() + b"\n"), encoding="utf-8")


if __name__ == "__main__":
    main()
