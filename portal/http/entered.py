"""Forms that were sent after the session had ended, or with an old mark.

What was entered is not lost: the values stand in the page that answers, and in the sign-in form if it is
that; nothing is stored. Only who entered them sends them again, on purpose: a page of another origin could
have made up the first request.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.request import UnreadablePostError
from django.shortcuts import render

from portal.http.origins import is_from_here
from portal.serving.connection import BUFFERED_BYTES

Values = list[tuple[str, str]]
KEPT = "kept-"  # begins the names of the values within the sign-in form
MOST_CHARACTERS = BUFFERED_BYTES // 3  # as much as strangers may send, written as a form


def ended_session_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """Ask who sends a form without a session to sign in; keep what was entered."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        to_sign_in = response.get("Location", "").startswith(f"{settings.LOGIN_URL}?")
        if not to_sign_in or request.method != "POST" or request.headers.get("HX-Request") == "true":
            return response
        return again(request, status=401) or response

    return middleware


def again(request: HttpRequest, *, status: int) -> HttpResponse | None:
    """The page from which a form that was not taken can be sent again.

    None if there is none: the request may be from elsewhere, or has more values than a page can hold.
    """
    values = _values(request)
    if values is None or not is_from_here(request) or request.path == settings.LOGIN_URL:
        return None
    context = {"values": values, "files": bool(request.FILES), "action": request.get_full_path()}
    if request.user.is_authenticated:
        return render(request, "send_again.html", context, status=status)
    kept = [(KEPT + name, value) for name, value in values]
    shown = {**context, "form": AuthenticationForm(request), "next": context["action"], "kept": kept}
    return render(request, "login.html", shown, status=status)


def _values(request: HttpRequest) -> Values | None:
    try:
        post = request.POST
    except (UnreadablePostError, ValueError):
        return None
    values = [pair for pair in _pairs(post) if pair[0] != "csrfmiddlewaretoken" and "password" not in pair[0]]
    return values if sum(len(name) + len(value) for name, value in values) <= MOST_CHARACTERS else None


def _pairs(post: QueryDict) -> Values:
    return [(name, str(value)) for name, values in post.lists() for value in values]


class SignIn(LoginView):
    """Signing in; after the end of a session with what was entered meanwhile."""

    template_name = "login.html"
    redirect_authenticated_user = True

    @property
    def _kept(self) -> Values:
        return [pair for pair in _pairs(self.request.POST) if pair[0].startswith(KEPT)]

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        return {**super().get_context_data(**kwargs), "kept": self._kept}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        if not self._kept:
            return response
        values = [(name.removeprefix(KEPT), value) for name, value in self._kept]
        return render(self.request, "send_again.html", {"values": values, "action": self.get_success_url()})
