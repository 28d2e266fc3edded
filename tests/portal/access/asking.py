"""One request of one role at a time; whatever it changes is taken back."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.core.cache import caches
from django.db import transaction
from django.test import Client

from tests.harness import world
from tests.portal.access.sides import Askers, Side

ROLES = ("anonymous", "gone", "member", "read", "lead", "stranger", "admin", "admin_write", "node", "other")
BY_TOKEN = ("/api/", "/agent/", "/v1/", "/metrics")  # the other addresses are pages
GAP = re.compile(r"\{(\w+)\}")
RUNS = b"""model_name,method,gpu_model,number_gpus,tokens_per_sample,per_device_batch_size,status
llama3.1-8b,full,A100-SXM4-80GB,1,512,64,oom
"""
# The file in a form of several parts: the field, the file's name and its content.
FILES = {
    "@jsonl": ("file", "data.jsonl", world.training_lines()),
    "@script": ("file", "train.yaml", b"learning_rate: 1e-4"),
    "@upload": ("upload", "data.jsonl", world.training_lines()),
    "@part": ("data", "upload", b"part"),
    "@csv": ("file", "runs.csv", RUNS),
}


@dataclass(frozen=True)
class Answer:
    """The answer to one request.

    status: as the table writes it

    text: headers and body

    unsaid: the text without the words that the asker sent
    """

    status: str
    text: str
    unsaid: str


@dataclass
class AccessMatrix:
    """Knocks for every role at the objects of the first side."""

    first: Side
    second: Side
    askers: Askers
    places: dict[str, str]
    # One for all: each client would build the chain of middleware anew.
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def is_signed_in(self, role: str, address: str) -> bool:
        """Pages know sessions alone: a role that has none is nobody there."""
        return address.startswith(BY_TOKEN) or role in self.askers.sessions

    def ask(self, role: str, method: str, address: str, body: str = "", *, token: str = "") -> Answer:
        """`token`: whose, where it is not the role's own."""
        for cache in caches.all():
            cache.clear()  # who knocks as often as this is asked to wait
        headers: dict[str, str] = {}
        self.client.cookies.clear()
        if address.startswith(BY_TOKEN):
            if plain := self.askers.tokens.get(token or role):
                headers["Authorization"] = f"Bearer {plain}"
        elif session := self.askers.sessions.get(role):
            self.client.cookies[settings.SESSION_COOKIE_NAME] = session
        path = self.filled(address)
        with transaction.atomic():
            answer = self.client.generic(
                "GET" if method == "ANY" else method,
                path,
                headers=headers,
                **self.content(address, body, headers),
            )
            content = b"".join(answer.streaming_content) if answer.streaming else answer.content
            self.before_rollback()
            transaction.set_rollback(True)
        text = _text(answer, content)
        return Answer(_status(answer), text, self._unsaid(f"{address} {body}", text))

    def leaks(self, role: str, answer: Answer) -> list[str]:
        """Return the texts that the role must not read, but does.

        These are secrets, and words of a team that is not its own.
        """
        first, second = self.first.words, self.second.words
        others = {"admin": [], "admin_write": [], "anonymous": first + second, "gone": first + second}
        others |= {"stranger": first, "other": first}
        found = [word for word in others.get(role, second) if word in answer.unsaid]
        return found + [secret for secret in self.askers.secrets if secret in answer.text]

    def before_rollback(self) -> None:
        """For tests that look at what a request wrote."""

    def filled(self, text: str) -> str:
        return GAP.sub(lambda gap: self.places.get(gap[1], gap[0]), text)

    def content(self, address: str, body: str, headers: dict[str, str]) -> dict[str, Any]:
        if body == "@bytes":
            headers["X-Content-SHA256"] = hashlib.sha256(b"bytes").hexdigest()
            return {"data": b"bytes", "content_type": "application/octet-stream"}
        if body in FILES:
            return _multipart(*FILES[body])
        if address.startswith(("/api/", "/agent/", "/v1/")):
            return {"data": self.filled(body).encode(), "content_type": "application/json"}
        fields = urlencode(json.loads(self.filled(body or "{}")), doseq=True)
        return {"data": fields.encode(), "content_type": "application/x-www-form-urlencoded"}

    def tables(self) -> list[str]:
        """Django's lists of rows and pages of one, of every table that has them."""
        found = []
        for model in filter(admin.site.is_registered, apps.get_models()):
            base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
            newest = model._default_manager.order_by("-pk").first()
            found += [base, *([f"{base}{quote(newest.pk)}/change/"] if newest else [])]
        return ["/admin/", *found]

    def _unsaid(self, said: str, text: str) -> str:
        """Without what the asker named in address or body, the longest first."""
        for piece in sorted(re.findall(r"[\w.@-]{4,}", self.filled(said)), key=len, reverse=True):
            text = text.replace(piece, "")
        return text


def _multipart(field: str, name: str, content: bytes) -> dict[str, Any]:
    head = f'--cut\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'
    data = head.encode() + content + b"\r\n--cut--\r\n"
    return {"data": data, "content_type": "multipart/form-data; boundary=cut"}


def _status(answer: Any) -> str:
    to_sign_in = answer.status_code == 302 and answer["Location"].startswith(("/login/", "/admin/login/"))
    kept = answer.status_code == 401 and b'name="password"' in answer.content  # a form, to be sent after that
    return "login" if to_sign_in or kept else str(answer.status_code)


def _text(answer: Any, content: bytes) -> str:
    headers = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
    return f"{headers}\n\n{content.decode(errors='replace')}"
