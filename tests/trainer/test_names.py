"""One rule for every name that people read."""

from __future__ import annotations

import pytest

from trainer.agent.errors import SetupError
from trainer.agent.settings import read_settings
from trainer.names import clean_name
from trainer.protocol import ProtocolError
from trainer.protocol_parsing import parse_enrol


@pytest.mark.parametrize("name", ["", "first try", "Prüfung 2 – größer", "学習", "δοκιμή", "run (2) 🚀"])
def test_what_people_write_is_a_name(name: str) -> None:
    assert clean_name(name) == name


def test_equal_names_are_equal_texts() -> None:
    assert clean_name("Pru\u0308fung") == "Prüfung"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a\x07b", "character 2 is invisible (U+0007"),
        ("a\nb", "U+000A"),
        ("safe\u202egpj.exe", "RIGHT-TO-LEFT OVERRIDE"),
        ("a\u200bb", "ZERO WIDTH SPACE"),
        ("\ufeffname", "ZERO WIDTH NO-BREAK SPACE"),
        ("two\u00a0words", "NO-BREAK SPACE"),
        ("\u3164", "HANGUL FILLER"),
        ("\u2066x", "LEFT-TO-RIGHT ISOLATE"),
        ("a\ufe0f", "VARIATION SELECTOR"),
    ],
)
def test_what_nobody_sees_is_refused_with_the_remedy(name: str, message: str) -> None:
    with pytest.raises(ValueError, match="delete it, or type the name anew") as refused:
        clean_name(name)
    assert message in str(refused.value)


def test_a_node_is_refused_by_both_sides() -> None:
    with pytest.raises(SetupError, match=r"--name .*RIGHT-TO-LEFT OVERRIDE"):
        read_settings(["--portal", "http://127.0.0.1:1", "--name", "gpu\u202e1"])
    with pytest.raises(ProtocolError, match="RIGHT-TO-LEFT OVERRIDE") as refused:
        parse_enrol({"protocol": 1, "join_token": "t", "name": "gpu\u202e1", "facts": {}})
    assert refused.value.path == "body.name"
