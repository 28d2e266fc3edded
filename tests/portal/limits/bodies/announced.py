"""Requests whose bodies are announced, and come whole, in part or not at all."""

from __future__ import annotations

import io
import json
from typing import Any

from django.test import Client, RequestFactory

from portal.wsgi import application

ROW = b'{"prompt": "a", "completion": "b"}\n'
LARGE = 3_000_000
FORM = "multipart/form-data; boundary=x"


class Body(io.BytesIO):
    """Tells whether it was touched."""

    touched = False

    def read(self, *size: Any) -> bytes:
        self.touched = True
        return super().read(*size)


def announce(
    path: str,
    size: int = LARGE,
    body: Body | None = None,
    headers: dict[str, str] | None = None,
    **environ: str,
) -> tuple[int, dict[str, Any]]:
    """Return status and JSON of a request whose body is only announced.

    It goes straight to the WSGI application.

    headers: filled with the answer's
    """
    request = RequestFactory().generic("POST", path)
    sent = {**request.environ, "CONTENT_TYPE": FORM, "CONTENT_LENGTH": str(size), **environ}
    reported: list[str] = []

    def begin(status: str, answered: list[tuple[str, str]]) -> None:
        reported.append(status)
        if headers is not None:
            headers.update(answered)

    response = application({**sent, "wsgi.input": body or Body()}, begin)
    content = b"".join(response)
    response.close()
    return int(reported[0][:3]), json.loads(content) if content.startswith(b"{") else None


def session(client: Client) -> dict[str, str]:
    return {"HTTP_COOKIE": f"sessionid={client.cookies['sessionid'].value}; csrftoken={'c' * 32}"}
