"""All addresses of the portal, interface by interface."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path, re_path

from portal.api.docs import unknown as unknown_address
from portal.api.people.device import DeviceAuthorizationApi, OAuthTokenApi
from portal.openai.views import unknown
from portal.ops.beat import beatz
from portal.ops.health import MetricsView, healthz, readyz

urlpatterns = [
    path("healthz", healthz),
    path("readyz", readyz),
    path("beatz", beatz),
    path("metrics", MetricsView.as_view()),
    path("admin/", admin.site.urls),
    path("api/", include("portal.api.urls")),
    path("oauth/device-authorization/", DeviceAuthorizationApi.as_view()),
    path("oauth/token/", OAuthTokenApi.as_view()),
    re_path(r"^(?:v1|openai/v1|openai)/", include("portal.openai.urls")),
    re_path(r"^(?:v1|openai)\Z", unknown),  # else they would be sent on to the address with a slash
    re_path(r"^(?:api|oauth(?:/.*)?)\Z", unknown_address),
    path("agent/v1/", include("portal.nodes.urls")),
    path("", include("portal.web.urls")),
]

handler400 = "portal.http.error_pages.bad_request"
handler403 = "portal.http.error_pages.forbidden"
handler404 = "portal.http.error_pages.not_found"
handler500 = "portal.http.error_pages.server_error"
