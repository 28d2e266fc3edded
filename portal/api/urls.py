"""Addresses under /api/.

All but files end in a slash; none redirects, which would turn POST into GET.
"""

from __future__ import annotations

from django.urls import path, re_path

from portal.api import docs
from portal.api.cluster import failure_causes, policy, shadow, simulations, spending, storage, version
from portal.api.common.viewsets import one, router
from portal.api.jobs import (
    arrays,
    decisions,
    failures,
    files,
    jobs,
    market,
    parts,
    similar,
    start,
    uploads,
)
from portal.api.jobs.changes import offers
from portal.api.knowledge import catalogue, executions, logs, predictors, recommendations
from portal.api.markets import markets, plans
from portal.api.nodes import calibrations, nodes, windows
from portal.api.people import audit, limits, me, service_accounts, teams, users
from portal.api.reading import intents, read_values, script_imports

urlpatterns = [
    path("jobs/<str:job_id>/events/", parts.EventsApi.as_view()),
    path("jobs/<str:job_id>/decisions/", decisions.DecisionsApi.as_view()),
    path("jobs/<str:job_id>/start/", start.StartApi.as_view()),
    path("jobs/<str:job_id>/changes/", offers.ChangesApi.as_view()),
    path("jobs/<str:job_id>/similar/", similar.SimilarApi.as_view()),
    path("jobs/<str:job_id>/failure/", failures.FailureApi.as_view()),
    path("jobs/<str:job_id>/questions/", failures.QuestionsApi.as_view()),
    path("jobs/<str:job_id>/market/", market.JobMarketApi.as_view()),
    path("jobs/<str:job_id>/metrics/", parts.MetricsApi.as_view()),
    path("jobs/<str:job_id>/logs/", parts.LogsApi.as_view()),
    path("jobs/<str:job_id>/artifacts/", parts.ArtifactsApi.as_view()),
    path("jobs/<str:job_id>/artifacts.tar", parts.ArtifactsTarApi.as_view(), name="artifacts-tar"),
    path("jobs/<str:job_id>/artifacts/<path:path>", parts.ArtifactApi.as_view(), name="artifact"),
    path("intents/", intents.IntentsApi.as_view()),
    path("read-values/", read_values.ReadValuesApi.as_view()),
    path("imports/", script_imports.ScriptImportsApi.as_view()),
    path("imports/<int:tree_id>/", script_imports.ScriptImportApi.as_view()),
    path("recommendations/", recommendations.RecommendationsApi.as_view()),
    path("recommendations/check/", recommendations.CheckApi.as_view()),
    path("recommendations/plans/", plans.PlansApi.as_view()),
    path("recommendations/start/", start.StartQuestionsApi.as_view()),
    path("recommendations/start/<str:question_id>/", start.StartQuestionApi.as_view(), name="start-question"),
    path("logs/", logs.LogElsewhereApi.as_view()),
    path("executions.csv", executions.ExecutionsCsvApi.as_view()),
    one("policy/", policy.ClusterPolicy, get="retrieve", patch="partial_update"),
    one("policy/shadow/", shadow.Probation, get="retrieve", post="start", delete="end"),
    path("failures/", failure_causes.FailuresApi.as_view()),
    path("spending/", spending.SpendingApi.as_view()),
    path("storage/", storage.StorageApi.as_view()),
    one("limits/", limits.DefaultLimits, get="retrieve", put="update"),
    path("me/", me.MeApi.as_view()),
    path("version/", version.VersionApi.as_view()),
    *router(
        {
            "arrays": arrays.Arrays,
            "audit": audit.Audit,
            "executions": executions.Executions,
            "files": files.Files,
            "gpus": catalogue.Gpus,
            "jobs": jobs.Jobs,
            "markets": markets.Markets,
            "models": catalogue.Models,
            "nodes": nodes.Nodes,
            "nodes/<str:node_id>/calibrations": calibrations.Calibrations,
            "predictors": predictors.Predictors,
            "service-accounts": service_accounts.ServiceAccounts,
            "simulations": simulations.Simulations,
            "teams": teams.Teams,
            "tokens": me.Tokens,
            "uploads": uploads.Uploads,
            "users": users.Users,
            "windows": windows.Windows,
        }
    ).urls,
    path("schema/", docs.SchemaApi.as_view(), name="schema"),
    path("docs/", docs.SwaggerApi.as_view(), name="api-docs"),
    re_path(r"^.*$", docs.unknown),
]
