"""What all views of the contract share."""

from __future__ import annotations

from typing import Any, cast

from django.http import HttpRequest, JsonResponse, QueryDict
from django.views.decorators.csrf import csrf_exempt
from rest_framework.request import Request

from portal.accounts.authentication import BearerAuthentication
from portal.accounts.models import Team, User
from portal.accounts.selectors import own_team
from portal.api.common.pages import read_query
from portal.api.common.views import AnyAccept, StrictView
from portal.openai import errors
from portal.serving.program_errors import openai_error

# Their clients say by these for whom they act.
TENANTS = ("OpenAI-Project", "OpenAI-Organization")
IGNORED = ("api-version",)  # Azure's clients send it with every request


class OpenAIView(StrictView):
    """A view for tokens alone, that answers JSON whatever a client says it accepts."""

    has_fields = False
    schema = None  # the contract is OpenAI's; /api/schema/ describes the REST API
    authentication_classes = [BearerAuthentication]
    content_negotiation_class = AnyAccept

    def get_exception_handler(self) -> Any:
        return errors.handle

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.team = tenant(request)

    def read_parameters(self, request: Request) -> dict[str, Any]:
        params = request.query_params.copy()
        for name in IGNORED:
            params.pop(name, None)
        return {
            **self.take_parameters(params),
            **read_query(self.query_class(self.asked_for(request)), params),
        }

    def take_parameters(self, params: QueryDict) -> dict[str, Any]:
        """Take parameters whose names are not fixed out of the others.

        Returns their values.
        """
        return {}


def tenant(request: Request) -> Team | None:
    """The team that the headers name, by name or id. Raises Refused."""
    team, user = None, cast(User, request.user)
    for header in TENANTS:
        if text := request.headers.get(header):
            found = own_team(user, text)
            if found is None or team not in (None, found):
                raise errors.Refused(
                    f"{header}: you are not in a team {text[:100]}. Name a team of yours, or leave the header"
                    " out (OPENAI_ORG_ID and OPENAI_PROJECT_ID set it).",
                    param=header, code="permission_denied", status=403,
                )  # fmt: skip
            team = found
    return team


@csrf_exempt
def unknown(request: HttpRequest) -> JsonResponse:
    """404 in the contract's form, for any method; never a redirect."""
    message = f"There is no {request.path[:200]}. docs/openai.md lists what is here."
    if request.path.endswith("/"):
        message = f"There is no {request.path[:200]}; addresses of the contract end without a slash."
    return JsonResponse(openai_error(404, "not_found", message), status=404)
