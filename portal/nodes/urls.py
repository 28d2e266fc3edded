"""Addresses for node agents, under /agent/v1/."""

from django.urls import path

from portal.node_package import CONSTRAINTS
from portal.nodes import views

urlpatterns = [
    path("enrol", views.enrol),
    path("sync", views.sync),
    path(f"packages/{CONSTRAINTS}", views.constraints),
    path("packages/<str:wheel>", views.package),
    path("claims/<str:claim_id>/inputs/<path:name>", views.inputs),
    path("claims/<str:claim_id>/artifacts/<path:path>", views.artifacts),
]
