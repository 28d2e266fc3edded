"""A portal, as programs use it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Self
from urllib.parse import quote

import anyio
import httpx2

from .. import _http, _settings
from .._errors import ForetuneError, NotFound
from .._models import Expected, Me, Plan, Record
from .files import AsyncFiles, id_of
from .jobs import AsyncJobs
from .transport import AsyncTransport

START_S, START_EVERY_S = 10.0, 0.3  # how long an answer is waited for, and between two questions


class AsyncClient:
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
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        access = _settings.access(url, token, profile)
        self.transport = AsyncTransport(access.url, access.token, tries=tries, transport=transport)
        self.files = AsyncFiles(self.transport)
        self.jobs = AsyncJobs(self.transport)
        self.arrays = AsyncCollection(self.transport, "arrays")
        self.nodes = AsyncCollection(self.transport, "nodes")
        self.models = AsyncCollection(self.transport, "models")
        self.gpus = AsyncCollection(self.transport, "gpus")
        self.teams = AsyncCollection(self.transport, "teams")
        self.users = AsyncCollection(self.transport, "users")
        self.tokens = AsyncCollection(self.transport, "tokens")
        self.service_accounts = AsyncCollection(self.transport, "service-accounts")
        self.windows = AsyncCollection(self.transport, "windows")
        self.markets = AsyncCollection(self.transport, "markets")
        self.executions = AsyncCollection(self.transport, "executions")
        self.predictors = AsyncCollection(self.transport, "predictors")

    def __repr__(self) -> str:
        return f"AsyncClient({self.transport.url!r}, token='***')"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self.transport.aclose()

    def tokens_of(self, owner: str) -> AsyncCollection:
        """The tokens of a person or service account, by its id or name."""
        return AsyncCollection(self.transport, f"users/{quote(owner, safe='')}/tokens")

    async def request(self, method: str, path: str, **options: Any) -> Any:
        """Any call of the REST API: the answer's JSON, None without one.

        path: below /api/. options: `query`, `json`, `files`, `headers`, `key` (an Idempotency-Key).
        """
        return await self.transport.json(method, path, **options)

    async def me(self) -> Me:
        return Me.parse(await self.transport.json("GET", "me/"))

    async def version(self) -> Record:
        """The portal's release and features, and the least release of a client."""
        return Record.parse(await self.transport.json("GET", "version/"))

    async def recommend(self, model: str, training_file: object, **fields: Any) -> Plan:
        """What the portal recommends for a job, and promises; nothing is submitted.

        training_file: a File or its id. fields: what else is asked of the job, e.g. `goal`.
        """
        asked = {**fields, "model": model, "training_file": id_of(training_file)}
        answer = await self.transport.json("POST", "recommendations/", json=asked, harmless=True)
        return Plan.parse(answer, fields=asked)

    async def expected_start(
        self, model: str, training_file: object, *, timeout: float = START_S, **fields: Any
    ) -> Expected | None:
        """When a job would start and end if it were submitted now.

        None where no worker of the portal tells it within `timeout` seconds, or the job could run nowhere.
        """
        asked = {**fields, "model": model, "training_file": id_of(training_file)}
        answer = await self.transport.json("POST", "recommendations/start/", json=asked, harmless=True)
        ends_at = time.monotonic() + timeout
        while answer["stage"] == "computing" and time.monotonic() < ends_at:
            await anyio.sleep(START_EVERY_S)
            answer = await self.transport.json("GET", answer["address"])
        return Expected.parse(answer["expected"]) if answer["expected"] else None


class AsyncCollection:
    """The objects of one kind, such as nodes."""

    def __init__(self, transport: AsyncTransport, path: str) -> None:
        self._transport, self._path = transport, path

    async def list(self, **filters: Any) -> Sequence[Record]:
        """All of them that the filters let through."""
        return [Record.parse(row) async for row in self._transport.pages(f"{self._path}/", filters)]

    async def get(self, identity: str) -> Record:
        return Record.parse(await self._transport.json("GET", self._place(identity)))

    async def create(self, **fields: Any) -> Record:
        """Make one.

        A token or a password is told this one time.
        """
        made = await self._transport.json("POST", f"{self._path}/", json=fields, key=_http.new_key())
        return Record.parse(made)

    async def change(self, identity: str, **fields: Any) -> Record:
        """What is left out stays as it is."""
        place = self._place(identity)
        return Record.parse(await self._transport.json("PATCH", place, json=fields, harmless=True))

    async def delete(self, identity: str) -> None:
        await self._transport.request("DELETE", self._place(identity))

    async def act(self, identity: str, verb: str, **fields: Any) -> Record:
        """A verb such as `drain` of nodes or `rotate` of tokens; returns what it answers."""
        place = f"{self._place(identity)}{verb}/"
        return Record.parse(await self._transport.json("POST", place, json=fields, key=_http.new_key()))

    def _place(self, identity: str) -> str:
        return f"{self._path}/{quote(identity, safe='')}/"

    async def find(self, name: str) -> Record:
        """The one with this id or, if only one has it, this name.

        Raises NotFound and ForetuneError.
        """
        return self.the_one(await self.list(), name)

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
