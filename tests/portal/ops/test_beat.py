"""The web server's beat: what it proves, and what it does not."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from portal import clock
from portal.ops import beat
from scheduler.models import WebBeat


@pytest.mark.django_db
def test_a_beat_is_written_down_and_a_flood_of_them_is_not(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.read()
    monkeypatch.setattr(beat, "written_at", 0.0)
    for seconds in range(3):
        moment = now + timedelta(seconds=seconds)
        monkeypatch.setattr(clock, "read", lambda moment=moment: moment)
        assert client.get("/beatz").status_code == 204
    assert WebBeat.objects.get().at == now
    monkeypatch.setattr(beat, "written_at", 0.0)
    client.get("/beatz")
    assert WebBeat.objects.get().at == moment


def test_a_server_asks_itself_as_it_is_reached_from_outside(
    live_server: LiveServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ALLOWED_HOSTS, settings.SECURE_SSL_REDIRECT = [".example.org"], True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    monkeypatch.setattr(beat, "written_at", 0.0)
    port = int(live_server.url.rpartition(":")[2])
    assert beat.ask(socket.AF_INET, ("127.0.0.1", port))
    assert WebBeat.objects.exists()


def test_a_server_that_does_not_answer_does_not_beat(settings: Settings) -> None:
    settings.NODE_LOST_S = 0.3
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        address = hangs.getsockname()
        assert not beat.ask(socket.AF_INET, address)
    assert not beat.ask(socket.AF_INET, address), "nobody listens there any more"
