"""One rule for every name that people read, and for numbers that they write."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from trainer.agent.errors import SetupError
from trainer.agent.settings import read_settings
from trainer.protocol import ProtocolError
from trainer.protocol_parsing import parse_enrol
from trainer.written import clean_name, decimal, whole


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


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("-7", -7), (" 1000 ", 1000), ("3.0", 3)])
def test_whole_numbers_of_a_command_line(text: str, value: int) -> None:
    assert whole(text) == decimal(text) == value


@pytest.mark.parametrize("text", ["", "1_000", "1,000", "٣", "0x10", "nan", "inf", "1e999", "two"])
def test_a_command_line_takes_numbers_in_plain_digits_alone(text: str) -> None:
    for read in (whole, decimal):
        with pytest.raises(ArgumentTypeError, match="in the digits 0 to 9"):
            read(text)


@pytest.mark.parametrize(
    "option", ["--slots=1_0", "--models-limit=1_0", "--stop-grace=1_0", "--ports=1_0-2_0"]
)
def test_an_agent_says_which_number_it_does_not_take(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_settings(["--portal", "https://portal.example.org", option])
    assert option.partition("=")[0] in capsys.readouterr().err
