"""An example for each body that an operation takes, made of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

# What a field is like, by its name; of others the default, the first word, or the least number is taken.
VALUES: dict[str, Any] = {
    "bandwidth_gb_s": 864.0,
    "begins_at": "2027-03-01T08:00:00Z",
    "bytes": 1_048_576,
    "data": "bytes of the part",
    "email": "ada@example.org",
    "ends_at": "2027-03-01T12:00:00Z",
    "file": "the file's bytes",
    "filename": "rows.jsonl",
    "gpu_model": "L40S",
    "hand_over_to": "ada",
    "ids": ["ftjob-019a0c1de2f34b5a68c7d9e0"],
    "memory_gib": 48.0,
    "model": "builtin/tiny-llama",
    "name": "nightly",
    "nodes": ["node-7"],
    "note": "for the demonstration",
    "on_demand_price": 1.9,
    "part_ids": ["part-1", "part-2"],
    "policies": ["easy", "sjf"],
    "price_per_gpu_hour": 1.9,
    "reason": "maintenance",
    "samples": [{"at": "2027-03-01T08:00:00Z", "price": 0.6, "available": 4}],
    "text": "train builtin/tiny-llama on rows.jsonl, cheapest by Friday",
    "tflops": 362.0,
    "training_file": "file-019a0c1de2f34b5a68c7d9e0",
    "user": "ada",
    "username": "ci-bot",
    "values": [{"learning_rate": 0.0001}, {"learning_rate": 0.0002}],
    "weight": 2.0,
}
# What a body shows beside what it has to have, by operation; others without such fields show their first.
LIMITS = {"running_jobs": 4, "gpus": 8}
MORE: dict[str, dict[str, Any]] = {
    "gpus_create": {"name": "L40S"},
    "imports_create": {"command": "python train.py --model Qwen/Qwen3-0.6B --epochs 3"},
    "jobs_cancel_many": {"ids": VALUES["ids"]},
    "jobs_create": {"goal": "cheapest", "params": {"tuning": "lora", "max_steps": 200}},
    "jobs_partial_update": {"priority": "low"},
    "limits_update": LIMITS,
    "markets_create": {"name": "east"},
    "markets_partial_update": {"max_nodes": 8},
    "models_create": {"name": "Qwen/Qwen3-0.6B", "place": "Qwen/Qwen3-0.6B"},
    "policy_partial_update": {"name": "sjf", "parameters": {"reserve": True}, "reason": "shorter waits"},
    "policy_shadow_start": {"name": "sjf"},
    "recommendations_plans": {"deadline_at": "2027-03-05T18:00:00Z"},
    "teams_create": {"name": "Linguists"},
    "teams_partial_update": {"name": "Linguists"},
    "teams_change_member": {"role": "lead"},
    "tokens_create": {"scope": "submit"},
    "users_set_limits": LIMITS,
    "windows_partial_update": {"note": "new fans"},
}


def add_examples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Show an example of each body. This is a hook of drf-spectacular."""
    made = Examples(result["components"]["schemas"])
    for operations in result["paths"].values():
        for operation in operations.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                content["example"] = made.body(content["schema"], MORE.get(operation["operationId"]))
    return result


class Examples:
    """Values that schemas allow."""

    def __init__(self, components: Mapping[str, Schema]) -> None:
        self._components = components

    def body(self, schema: Schema, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Values of the required fields, and more; without either, of the first one."""
        whole = self._whole(schema)
        fields: Mapping[str, Schema] = whole.get("properties", {})
        names = whole.get("required", ()) or (() if more else [*fields][:1])
        return {name: self.value(fields[name], name) for name in names} | dict(more or {})

    def value(self, schema: Schema, name: str = "") -> Any:
        """A value of a field of this name."""
        if name in VALUES:
            return VALUES[name]
        whole = self._whole(schema)
        if words := [word for word in whole.get("enum", ()) if word]:
            return words[0]
        if whole.get("default") not in (None, "", [], {}):
            return whole["default"]
        kinds = whole.get("type", "object")
        kind = kinds if isinstance(kinds, str) else kinds[0]
        return self._of_kind(kind, whole)

    def _of_kind(self, kind: str, schema: Schema) -> Any:
        match kind:
            case "object":
                return self.body(schema)
            case "array":
                return [self.value(schema["items"])]
            case "boolean":
                return True
            case "string":
                return "text"
            case _:
                return max(1, schema.get("minimum", 1))

    def _whole(self, schema: Schema) -> Schema:
        """The schema without a reference, and of several the first."""
        for part in self._parts(schema):
            return {**self._whole(part), **schema}
        return schema

    def _parts(self, schema: Schema) -> Iterator[Schema]:
        if "$ref" in schema:
            yield self._components[schema["$ref"].rpartition("/")[2]]
        for union in ("allOf", "oneOf", "anyOf"):
            yield from schema.get(union, ())
