"""Addresses for node agents, under /agent/v1/."""

from django.urls import path

from portal.nodes import views

urlpatterns = [
    path("enrol", views.enrol),
    path("sync", views.sync),
    path("claims/<str:claim_id>/inputs/<path:name>", views.inputs),
    path("claims/<str:claim_id>/artifacts/<path:path>", views.artifacts),
]
