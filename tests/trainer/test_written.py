"""One rule for every name that people read, and for numbers that they write."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from trainer.agent.errors import SetupError
from trainer.agent.settings import read_settings
from trainer.protocol import PROTOCOL, ProtocolError
from trainer.protocol_parsing import parse_enrol
from trainer.written import clean_name, decimal, whole


@pytest.mark.parametrize("name", ["", "first try", "Prüfung 2 – größer", "学習", "δοκιμή", "run (2) 🚀"])
def test_what_people_write_is_a_name(name: str) -> None:
    assert clean_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "\u062f\u0627\u062f\u0647\u200c\u0647\u0627",  # Persian: a plural
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "GPU\u200c\u0647\u0627",  # behind a foreign word
        "\u06f5\u200c\u0633\u0627\u0644\u0647",  # behind a number
        "\u0915\u094d\u200d\u0937",  # Hindi: half a letter
        "\u0930\u094d\u200d\u092f",
        "\u09b0\u200d\u09cd\u09af\u09be\u09ae",  # Bengali: a joiner before the sign that joins
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Sinhala
        "\u0d28\u0d4d\u200d\u0d31\u0d46",  # Malayalam
        "\u0c95\u0ccd\u200c\u0cb7",  # Kannada
        "\u1820\u180b\u180e\u1820",  # Mongolian: another shape, a vowel apart
        "\u845b\U000e0100\u57ce",  # Japanese: one of two shapes of a character
        "\u2764\ufe0f run",
        "\u2714\ufe0e done",
        "\u2764\ufe0f\u200d\U0001f525",
        "\U0001f469\u200d\U0001f4bb",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 and co",
        "\U0001f9d1\U0001f3fd\u200d\U0001f91d\u200d\U0001f9d1\U0001f3fb",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "\U0001f3f4\u200d\u2620\ufe0f",
        "\U0001f441\ufe0f\u200d\U0001f5e8\ufe0f",
        "\U0001f3c3\u200d\u2642\ufe0f\u200d\u27a1\ufe0f",
        "\u2122\ufe0f",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # a flag by tags
        "\U0001f1e9\U0001f1ea",
        "1\ufe0f\u20e3 #\ufe0f\u20e3",
        "\U0001fae9",  # of Unicode 16
    ],
)
def test_what_a_script_or_an_emoji_needs_is_kept(name: str) -> None:
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
        ("1\ufe0f", "VARIATION SELECTOR"),
        ("a\U000e0100", "VARIATION SELECTOR-17"),
        ("\U0001f600\U000e0100\U000e0101", "VARIATION SELECTOR-17"),  # hidden text
        ("\u2764\ufe0f\ufe0f", "character 3 is invisible"),
        ("\u845b\U000e0100\U000e0100", "character 3 is invisible"),
        ("a\u200db", "ZERO WIDTH JOINER"),
        ("a\u200cb", "ZERO WIDTH NON-JOINER"),
        ("\u0430\u200c\u0431", "ZERO WIDTH NON-JOINER"),  # Cyrillic
        ("\u5b66\u200d\u7fd2", "ZERO WIDTH JOINER"),
        ("\u062f\u200c", "ZERO WIDTH NON-JOINER"),
        ("\u200c\u062f", "ZERO WIDTH NON-JOINER"),
        ("\u062f\u200c a", "ZERO WIDTH NON-JOINER"),
        ("\u062f\u200c\u200c\u0647", "character 2 is invisible"),
        ("\u062f\u200ba\u0647", "ZERO WIDTH SPACE"),
        ("\u062f\u202e\u0647", "RIGHT-TO-LEFT OVERRIDE"),
        ("a\u200d\u0647", "ZERO WIDTH JOINER"),
        ("\U0001f600\u200d", "ZERO WIDTH JOINER"),
        ("\U0001f600\u200da", "ZERO WIDTH JOINER"),
        ("a\u200d\U0001f600", "ZERO WIDTH JOINER"),
        ("a\u180b", "MONGOLIAN FREE VARIATION SELECTOR ONE"),
        ("\U0001f3f4\U000e0067\U000e0062", "TAG LATIN SMALL LETTER G"),  # no end
        ("\U0001f600\U000e0067\U000e0062\U000e0073\U000e007f", "TAG LATIN SMALL LETTER G"),  # no flag
        ("a\U000e0067", "TAG LATIN SMALL LETTER G"),
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
        parse_enrol({"protocol": PROTOCOL, "join_token": "t", "name": "gpu\u202e1", "facts": {}})
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
