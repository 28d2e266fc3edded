"""What a browser sends of the forms of a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

UNSENT = ("submit", "button", "file", "reset", "image")


@dataclass
class SentForm:
    """A form as it is sent without a touch of its reader: the last value of each name."""

    action: str
    method: str
    values: dict[str, str] = field(default_factory=dict)


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[SentForm] = []
        self._open: SentForm | None = None
        self._select = self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = SentForm(given.get("action", ""), given.get("method", "get").lower())
            self.forms.append(self._open)
        if self._open is None:
            return
        values, name = self._open.values, given.get("name", "")
        if tag == "select":
            self._select = "" if "multiple" in given else name
        elif tag == "option" and self._select:
            if "selected" in given or self._select not in values:
                values[self._select] = given.get("value", "")
        elif tag == "textarea" and name:
            self._text, values[name] = name, ""
        elif tag == "input" and name and "disabled" not in given:
            kind = given.get("type", "text")
            if kind in ("checkbox", "radio") and "checked" in given:
                values[name] = given.get("value", "on")
            elif kind not in (*UNSENT, "checkbox", "radio"):
                values[name] = given.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._open and self._text:
            self._open.values[self._text] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._text = ""


def forms_of(page: str) -> list[SentForm]:
    """All forms of a page, in its order."""
    parser = _Forms()
    parser.feed(page)
    return parser.forms


def form_to(page: str, action: str) -> SentForm:
    """The form of a page that is sent to an address; empty: to the page's own."""
    return next(form for form in forms_of(page) if form.action == action and form.method == "post")
