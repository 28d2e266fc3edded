"""Addresses under /api/. All end in a slash, and none redirects: a redirect would turn POST into GET."""

from __future__ import annotations

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView

from portal.api import docs, files, job_parts, jobs, knowledge, nodes, people, policy

urlpatterns = [
    path("files/", files.FilesApi.as_view()),
    path("files/<str:file_id>/", files.FileApi.as_view()),
    path("jobs/", jobs.JobsApi.as_view()),
    path("jobs/<str:job_id>/", jobs.JobApi.as_view()),
    path("jobs/<str:job_id>/cancel/", jobs.CancelApi.as_view()),
    path("jobs/<str:job_id>/pause/", jobs.PauseApi.as_view()),
    path("jobs/<str:job_id>/resume/", jobs.ResumeApi.as_view()),
    path("jobs/<str:job_id>/events/", job_parts.EventsApi.as_view()),
    path("jobs/<str:job_id>/metrics/", job_parts.MetricsApi.as_view()),
    path("jobs/<str:job_id>/logs/", job_parts.LogsApi.as_view()),
    path("jobs/<str:job_id>/artifacts/", job_parts.ArtifactsApi.as_view()),
    path("jobs/<str:job_id>/artifacts/<path:path>", job_parts.ArtifactApi.as_view(), name="artifact"),
    path("recommendations/", knowledge.RecommendationsApi.as_view()),
    path("models/", knowledge.ModelsApi.as_view()),
    path("executions/", knowledge.ExecutionsApi.as_view()),
    path("predictors/", knowledge.PredictorsApi.as_view()),
    path("nodes/", nodes.NodesApi.as_view()),
    path("nodes/join-tokens/", nodes.JoinTokensApi.as_view()),
    path("nodes/<str:node_id>/", nodes.NodeApi.as_view()),
    path("nodes/<str:node_id>/drain/", nodes.DrainApi.as_view()),
    path("nodes/<str:node_id>/resume/", nodes.ResumeNodeApi.as_view()),
    path("policy/", policy.PolicyApi.as_view()),
    path("me/", people.MeApi.as_view()),
    path("tokens/", people.TokensApi.as_view()),
    path("tokens/<int:token_id>/revoke/", people.RevokeApi.as_view()),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", docs.SwaggerApi.as_view(), name="api-docs"),
    re_path(r"^.*$", docs.unknown),
]
