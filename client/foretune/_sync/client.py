# Made from _async/ by client/sync_half.py.
"""A portal, as programs use it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Self
from urllib.parse import quote

import httpx2

from .. import _http, _settings
from .._errors import ForetuneError, NotFound
from .._models import Expected, Me, Plan, Record
from .files import Files, id_of
from .jobs import Jobs
from .transport import Transport

START_S, START_EVERY_S = 10.0, 0.3  # how long an answer is waited for, and between two questions


class Client:
    """One person's access to a portal.

    url, token: without them those of FORETUNE_URL and FORETUNE_TOKEN, else those of the profile (of
    FORETUNE_PROFILE, or the one in use), which `foretune login` makes.
    tries: of each request that does no harm twice.

    Raises NotConfigured if address or token are missing or the address is none.
    """

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        profile: str = "",
        tries: int = _http.TRIES,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        access = _settings.access(url, token, profile)
        self.transport = Transport(access.url, access.token, tries=tries, transport=transport)
        self.files = Files(self.transport)
        self.jobs = Jobs(self.transport)
        self.arrays = Collection(self.transport, "arrays")
        self.nodes = Collection(self.transport, "nodes")
        self.models = Collection(self.transport, "models")
        self.gpus = Collection(self.transport, "gpus")
        self.teams = Collection(self.transport, "teams")
        self.users = Collection(self.transport, "users")
        self.tokens = Collection(self.transport, "tokens")
        self.service_accounts = Collection(self.transport, "service-accounts")
        self.windows = Collection(self.transport, "windows")
        self.markets = Collection(self.transport, "markets")
        self.executions = Collection(self.transport, "executions")
        self.predictors = Collection(self.transport, "predictors")

    def __repr__(self) -> str:
        return f"Client({self.transport.url!r}, token='***')"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.transport.close()

    def tokens_of(self, owner: str) -> Collection:
        """The tokens of a person or service account, by its id or name."""
        return Collection(self.transport, f"users/{quote(owner, safe='')}/tokens")

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Any call of the REST API: the answer's JSON, None without one.

        path: below /api/. options: `query`, `json`, `files`, `headers`, `key` (an Idempotency-Key).
        """
        return self.transport.json(method, path, **options)

    def me(self) -> Me:
        return Me.parse(self.transport.json("GET", "me/"))

    def version(self) -> Record:
        """The portal's release and features, and the least release of a client."""
        return Record.parse(self.transport.json("GET", "version/"))

    def recommend(self, model: str, training_file: object, **fields: Any) -> Plan:
        """What the portal recommends for a job, and promises; nothing is submitted.

        training_file: a File or its id. fields: what else is asked of the job, e.g. `goal`.
        """
        asked = {**fields, "model": model, "training_file": id_of(training_file)}
        answer = self.transport.json("POST", "recommendations/", json=asked, harmless=True)
        return Plan.parse(answer, fields=asked)

    def expected_start(
        self, model: str, training_file: object, *, timeout: float = START_S, **fields: Any
    ) -> Expected | None:
        """When a job would start and end if it were submitted now.

        None where no worker of the portal tells it within `timeout` seconds, or the job could run nowhere.
        """
        asked = {**fields, "model": model, "training_file": id_of(training_file)}
        answer = self.transport.json("POST", "recommendations/start/", json=asked, harmless=True)
        ends_at = time.monotonic() + timeout
        while answer["stage"] == "computing" and time.monotonic() < ends_at:
            time.sleep(START_EVERY_S)
            answer = self.transport.json("GET", answer["address"])
        return Expected.parse(answer["expected"]) if answer["expected"] else None


class Collection:
    """The objects of one kind, such as nodes."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport, self._path = transport, path

    def list(self, **filters: Any) -> Sequence[Record]:
        """All of them that the filters let through."""
        return [Record.parse(row) for row in self._transport.pages(f"{self._path}/", filters)]

    def get(self, identity: str) -> Record:
        return Record.parse(self._transport.json("GET", self._place(identity)))

    def create(self, **fields: Any) -> Record:
        """Make one.

        A token or a password is told this one time.
        """
        made = self._transport.json("POST", f"{self._path}/", json=fields, key=_http.new_key())
        return Record.parse(made)

    def change(self, identity: str, **fields: Any) -> Record:
        """What is left out stays as it is."""
        place = self._place(identity)
        return Record.parse(self._transport.json("PATCH", place, json=fields, harmless=True))

    def delete(self, identity: str) -> None:
        self._transport.request("DELETE", self._place(identity))

    def act(self, identity: str, verb: str, **fields: Any) -> Record:
        """A verb such as `drain` of nodes or `rotate` of tokens; returns what it answers."""
        place = f"{self._place(identity)}{verb}/"
        return Record.parse(self._transport.json("POST", place, json=fields, key=_http.new_key()))

    def _place(self, identity: str) -> str:
        return f"{self._path}/{quote(identity, safe='')}/"

    def find(self, name: str) -> Record:
        """The one with this id or, if only one has it, this name.

        Raises NotFound and ForetuneError.
        """
        return self.the_one(self.list(), name)

    def the_one(self, rows: Sequence[Record], name: str) -> Record:
        """That of the rows which has this id or name."""
        for field in ("id", "name", "username"):
            found = [row for row in rows if str(row.raw.get(field)) == name]
            if len(found) == 1:
                return found[0]
            if found:
                candidates = ", ".join(str(row.raw["id"]) for row in found)
                raise ForetuneError(f"{len(found)} of {self._path} are called {name}: {candidates}.")
        raise NotFound(
            f"There is no {name} among the {self._path} that you see.", code="not_found", status=404
        )
