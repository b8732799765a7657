"""The description of the HTTP front for programs (OpenAPI 3.1)."""

from __future__ import annotations

from typing import Any

import msgspec

from .requests import Learn, Policy, Predict, Rollback

_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
_ERRORS = {
    "400": "no JSON", "401": "no token, or a wrong one", "403": "a token without the right",
    "404": "no such model", "408": "the body did not arrive",
    "409": "ids that are not known", "413": "too many bytes or rows", "415": "another type than JSON, or compressed",
    "422": "bad rows: the model is as it was",
    "429": "too many requests", "431": "headers too large", "503": "too much is waiting, or it took too long",
    "507": "the disk cannot take it",
}  # fmt: skip
_NUMBER, _LIST = {"type": "integer"}, {"type": "array"}
_ANSWERS: dict[str, Any] = {
    "predict": {
        "predictions": _LIST,
        "probabilities": _LIST,
        "classes": _LIST,
        "intervals": _LIST,
        "sets": _LIST,
        "version": _NUMBER,
        "warnings": _LIST,
    },
    "learn": {"learned": _NUMBER, "total": _NUMBER, "version": _NUMBER, "repeated": _NUMBER, "warnings": _LIST},
    "promote": {"version": _NUMBER},
    "rollback": {"version": _NUMBER},
    "acknowledge": {"acknowledged": _NUMBER},
    "policy": {"policy": {"type": "object"}},
}
_CALLS = {
    "predict": "Predictions; with ids, the rows wait for their targets",
    "learn": "Learn rows, or targets of rows that were predicted with ids; durable when answered",
    "promote": "The challenger becomes the champion",
    "rollback": "A former version becomes the champion again",
    "acknowledge": "The loss of calls that /health reports has been seen: it is no problem any more",
    "policy": "The share of requests that the challenger answers, and when a former champion comes back by itself",
}
_FILES = {
    ("/models/{name}", "put"): "A model file becomes a new model, or the champion of one that is there",
    ("/models/{name}", "delete"): "A model goes, with all that it has learned",
    ("/models/{name}/challenger", "put"): "A model file becomes the challenger",
    ("/models/{name}/challenger", "delete"): "No challenger any more",
}
_VIEWS = {
    "/models": "All models",
    "/models/{name}": "What a model is and how it does",
    "/models/{name}/column": "How the values of the column `name` were distributed then and now",
    "/models/{name}/file": "The file of the champion",
    "/metrics": "Prometheus text",
    "/health": "Whether all is well",
    "/live": "Whether the server answers",
    "/ready": "Whether it takes requests: not while it shuts down",
    "/events": "The state of a model as server-sent events",
}


def document(version: str) -> dict[str, Any]:
    """The document."""
    bodies, schemas = msgspec.json.schema_components(
        (Predict, Learn, Rollback, Policy), ref_template="#/components/schemas/{name}"
    )
    by_name = dict(zip(("predict", "learn", "rollback", "policy"), bodies))
    error = {"type": "object", "properties": {"error": {"type": "string"}, "row": _NUMBER, "column": {}}}
    schemas["Error"] = error
    failures = {
        code: {"description": text, "content": _json({"$ref": "#/components/schemas/Error"})}
        for code, text in _ERRORS.items()
    }
    paths: dict[str, Any] = {}
    for name, summary in _CALLS.items():
        answer = {"type": "object", "properties": _ANSWERS[name]}
        paths[f"/models/{{name}}/{name}"] = {
            "post": {
                "summary": summary,
                "parameters": [_NAME],
                "requestBody": {"content": _json(by_name.get(name, {"type": "object"}))},
                "responses": {"200": {"description": "done", "content": _json(answer)}} | failures,
            }
        }
    for path, summary in _VIEWS.items():
        about: dict[str, Any] = {"summary": summary, "responses": {"200": {"description": "the answer"}}}
        if "{name}" in path:
            about["parameters"] = [_NAME]
        paths[path] = {"get": about}
    for (path, method), summary in _FILES.items():
        about = {"summary": summary, "parameters": [_NAME]}
        about["responses"] = {"200": {"description": "done"}, "201": {"description": "created"}} | failures
        if method == "put":
            about["requestBody"] = {"content": {"application/octet-stream": {}}}
        paths.setdefault(path, {})[method] = about
    return {
        "openapi": "3.1.0",
        "info": {"title": "kernelstream", "version": version},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
