"""The description of the HTTP front for programs (OpenAPI 3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from .requests import Learn, Policy, Predict, Rollback

_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
_ERRORS = {
    "400": "not JSON", "401": "missing or wrong token", "403": "the token lacks the right",
    "404": "no such model", "408": "the body did not arrive in time",
    "409": "unknown ids, or refused in the present state", "413": "too many bytes or rows",
    "415": "unsupported type, or compressed", "422": "bad rows: the model is unchanged",
    "429": "too many requests", "431": "headers too large", "503": "too many waiting, or it took too long",
    "507": "no space on the disk",
}  # fmt: skip
_NUMBER, _LIST = {"type": "integer"}, {"type": "array"}
_PREDICTED: dict[str, Any] = {
    "predictions": _LIST,
    "probabilities": _LIST,
    "classes": _LIST,
    "intervals": _LIST,
    "sets": _LIST,
    "version": _NUMBER,
    "warnings": _LIST,
}
_ANSWERS: dict[str, Any] = {
    "predict": _PREDICTED,
    "forecast": _PREDICTED,
    "learn": {"learned": _NUMBER, "total": _NUMBER, "version": _NUMBER, "repeated": _NUMBER, "warnings": _LIST},
    "promote": {"version": _NUMBER},
    "rollback": {"version": _NUMBER},
    "acknowledge": {"acknowledged": _NUMBER},
    "policy": {"policy": {"type": "object"}},
}


def document(version: str, calls: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
    """The document for calls, given as path, method, and summary."""
    asked = {"predict": Predict, "forecast": Predict, "learn": Learn, "rollback": Rollback, "policy": Policy}
    bodies, schemas = msgspec.json.schema_components(asked.values(), ref_template="#/components/schemas/{name}")
    by_name = dict(zip(asked, bodies))
    schemas["Error"] = {"type": "object", "properties": {"error": {"type": "string"}, "row": _NUMBER, "column": {}}}
    failures = {
        code: {"description": text, "content": _json({"$ref": "#/components/schemas/Error"})}
        for code, text in _ERRORS.items()
    }
    paths: dict[str, Any] = {}
    for path, method, summary in calls:
        name, about = path.rpartition("/")[2], dict[str, Any](summary=summary)
        done: dict[str, dict[str, Any]] = {"200": {"description": "done"}}
        if "{name}" in path:
            about["parameters"] = [_NAME]
        if method == "PUT":
            about["requestBody"] = {"content": {"application/octet-stream": {}}}
            done["201"] = {"description": "created"}
        elif method == "POST":
            about["requestBody"] = {"content": _json(by_name.get(name, {"type": "object"}))}
            done["200"] |= {"content": _json({"type": "object", "properties": _ANSWERS[name]})}
        about["responses"] = done if method == "GET" else done | failures
        paths.setdefault(path, {})[method.lower()] = about
    return {
        "openapi": "3.1.0",
        "info": {"title": "kernelstream", "version": version},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
