"""Links of the navigation and links between pages of lists.

The navigation's links know whether the shown page lies behind them.
"""

from __future__ import annotations

from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag(takes_context=True)
def nav_link(context: dict[str, Any], name: str, label: str, kind: str = "nav-link") -> SafeString:
    """A link to the page `name`; marked while that page or one below it is shown."""
    address = reverse(name)
    if context["request"].path.startswith(address):
        return format_html('<a class="{} active" aria-current="page" href="{}">{}</a>', kind, address, label)
    return format_html('<a class="{}" href="{}">{}</a>', kind, address, label)


@register.simple_tag(takes_context=True)
def page_address(context: dict[str, Any], parameter: str, number: int) -> str:
    """The address of another page of the list shown, with its filters kept."""
    query = context["request"].GET.copy()
    query[parameter] = str(number)
    return f"?{query.urlencode()}"
