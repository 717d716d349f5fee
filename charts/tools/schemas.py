"""schemas.py SWAGGER DIRECTORY: Kubernetes's OpenAPI as one strict JSON schema a kind, for kubeconform."""

import json
import pathlib
import sys

ANY = {"io.k8s.apimachinery.pkg.util.intstr.IntOrString": ["integer", "string"],
       "io.k8s.apimachinery.pkg.api.resource.Quantity": ["number", "string"]}


def strict(node):
    """Unknown keys are refused wherever the keys are known."""
    if isinstance(node, dict):
        if "properties" in node and "additionalProperties" not in node:
            node["additionalProperties"] = False
        for child in node.values():
            strict(child)
    elif isinstance(node, list):
        for child in node:
            strict(child)


def references(node, found):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            found.add(node["$ref"].rsplit("/", 1)[1])
        for child in node.values():
            references(child, found)
    elif isinstance(node, list):
        for child in node:
            references(child, found)


def closure(name, definitions):
    seen, todo = set(), {name}
    while todo:
        one = todo.pop()
        seen.add(one)
        found = set()
        references(definitions[one], found)
        todo |= found - seen
    return seen


def main():
    definitions = json.loads(pathlib.Path(sys.argv[1]).read_text())["definitions"]
    into = pathlib.Path(sys.argv[2])
    into.mkdir(parents=True, exist_ok=True)
    for name, kinds in ANY.items():
        definitions[name] = {"type": kinds}
    strict(definitions)
    for name, definition in definitions.items():
        for kind in definition.get("x-kubernetes-group-version-kind", []):
            group = kind["group"].split(".")[0]
            file = "-".join(part for part in (kind["kind"].lower(), group, kind["version"]) if part)
            needed = {d: definitions[d] for d in closure(name, definitions)}
            schema = {"$ref": f"#/definitions/{name}", "definitions": needed}
            (into / f"{file}.json").write_text(json.dumps(schema))


main()
