"""Reads what `protoc --include_source_info --descriptor_set_out` writes, without a library of protobuf: Python alone
is what the build needs. Only what the tables of the build are made of; google/protobuf/descriptor.proto has the numbers."""

import re

HTTP_OPTION = 72295728  # google/api/annotations.proto
PLAYER_OPTION = 50301  # holdfast/v1/player.proto
CACHE_OPTION = 50302  # holdfast/v1/caching.proto
PUBLIC_OPTION = 50303  # holdfast/v1/player.proto
VERBS = {2: "get", 3: "put", 4: "post", 5: "delete", 6: "patch"}  # google/api/http.proto
NO_SIDE_EFFECTS = 1
REPEATED = 3


def enumerator(name):
    """GET_PROFILE of GetProfile, as in idl/method.h."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(data):
    """(number, value): an int, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
        elif key & 7 == 2:
            size, at = _varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            size = {1: 8, 5: 4}[key & 7]
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def _text(data, number, default=""):
    for found, value in _fields(data):
        if found == number:
            default = value.decode()
    return default


def _comments(data):
    """Path of a declaration -> the comment in front of it."""
    found = {}
    for number, location in _fields(data):
        if number != 1:
            continue
        path, comment = (), ""
        for part, value in _fields(location):
            if part == 1:
                at, numbers = 0, []
                while at < len(value):
                    one, at = _varint(value, at)
                    numbers.append(one)
                path = tuple(numbers)
            elif part == 3:
                comment = value.decode()
        if comment:
            found[path] = "\n".join(line.removeprefix(" ").rstrip() for line in comment.strip("\n").split("\n"))
    return found


class Field:
    TYPES = {1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 8: "bool", 9: "string", 11: "message",
             12: "bytes", 13: "uint32", 14: "enum"}

    def __init__(self, data, comment):
        values = dict(_fields(data))
        self.name = values[1].decode()
        self.number = values[3]
        self.repeated = values.get(4) == REPEATED
        self.type = self.TYPES[values[5]]
        self.type_name = values.get(6, b"").decode().removeprefix(".")
        self.oneof = values.get(9)
        self.json_name = values[10].decode()
        self.optional = values.get(17, 0) == 1
        self.comment = comment


class Message:
    def __init__(self, name, data, comments, path):
        self.name, self.comment = name, comments.get(path, "")
        fields = [value for number, value in _fields(data) if number == 2]
        self.fields = [Field(value, comments.get((*path, 2, i), "")) for i, value in enumerate(fields)]

    def field(self, name):
        return next((each for each in self.fields if each.name == name), None)


class Enum:
    def __init__(self, name, data, comments, path):
        self.name, self.comment = name, comments.get(path, "")
        values = [value for number, value in _fields(data) if number == 2]
        self.values = [(_text(value, 1), comments.get((*path, 2, i), "")) for i, value in enumerate(values)]


class Binding:
    """A verb and a path of a method, as an HttpRule has them."""

    def __init__(self, method, rule):
        self.method, self.verb, self.path, self.body, self.others = method, None, None, "", []
        for number, value in _fields(rule):
            if number in VERBS:
                self.verb, self.path = VERBS[number].upper(), value.decode()
            elif number == 7:
                self.body = value.decode()
            elif number == 11:
                self.others.append(Binding(method, value))
            else:
                raise ValueError(f"{method.name}: field {number} of HttpRule is not supported here")


class Method:
    def __init__(self, service, data, comment):
        self.service, self.comment = service, comment
        self.name, self.request, self.response = (_text(data, number).rsplit(".", 1)[-1] if number == 1 else
                                                  _text(data, number).removeprefix(".") for number in (1, 2, 3))
        self.streams = dict(_fields(data)).get(6, 0) == 1
        self.bindings = []  # The first is the one that pages show.
        options = b"".join(value for number, value in _fields(data) if number == 4)
        self.is_read = dict(_fields(options)).get(34) == NO_SIDE_EFFECTS
        self.player_field = _text(options, PLAYER_OPTION, None)
        self.player_public = dict(_fields(options)).get(PUBLIC_OPTION, 0) == 1
        self.cache_max_age_s = dict(_fields(options)).get(CACHE_OPTION, 0)
        for number, rule in _fields(options):
            if number == HTTP_OPTION:
                first = Binding(self, rule)
                self.bindings = [first, *first.others]

    @property
    def full_name(self):
        return f"{self.service}/{self.name}"


class DescriptorSet:
    """messages and enums by full name; methods in the order of files and lines."""

    def __init__(self, path):
        self.messages, self.enums, self.methods, self.services = {}, {}, [], {}
        for number, data in _fields(path.read_bytes()):
            if number == 1:
                self._file(data)

    def _file(self, data):
        package = _text(data, 2)
        comments = {}
        for number, value in _fields(data):
            if number == 9:
                comments = _comments(value)
        self._types(data, package, comments, ((4, "message"), (5, "enum")))
        services = [value for number, value in _fields(data) if number == 6]
        for place, service in enumerate(services):
            name = f"{package}.{_text(service, 1)}"
            self.services[name] = comments.get((6, place), "")
            rpcs = [rpc for part, rpc in _fields(service) if part == 2]
            self.methods += [Method(name, rpc, comments.get((6, place, 2, i), "")) for i, rpc in enumerate(rpcs)]

    def _types(self, data, scope, comments, kinds, path=()):
        """Of a file, or those that are declared within a message."""
        for wanted, kind in kinds:
            found = [value for number, value in _fields(data) if number == wanted]
            for place, value in enumerate(found):
                name, here = f"{scope}.{_text(value, 1)}", (*path, wanted, place)
                if kind == "enum":
                    self.enums[name] = Enum(name, value, comments, here)
                    continue
                self.messages[name] = Message(name, value, comments, here)
                self._types(value, name, comments, ((3, "message"), (4, "enum")), here)
