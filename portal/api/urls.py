"""Addresses under /api/.

All but files end in a slash; none redirects, which would turn POST into GET.
"""

from __future__ import annotations

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView

from portal.api import docs
from portal.api.cluster import policy, simulations, spending
from portal.api.jobs import arrays, decisions, failures, files, intents, jobs, parts, script_imports, similar
from portal.api.knowledge import catalogue, executions, recommendations
from portal.api.nodes import calibrations, nodes, windows
from portal.api.people import audit, limits, me, teams, users

urlpatterns = [
    path("files/", files.FilesApi.as_view()),
    path("files/<str:file_id>/", files.FileApi.as_view()),
    path("arrays/", arrays.ArraysApi.as_view()),
    path("arrays/<str:array_id>/", arrays.ArrayApi.as_view()),
    path("arrays/<str:array_id>/cancel/", arrays.ArrayCancelApi.as_view()),
    path("jobs/", jobs.JobsApi.as_view()),
    path("jobs/<str:job_id>/", jobs.JobApi.as_view()),
    path("jobs/<str:job_id>/cancel/", jobs.CancelApi.as_view()),
    path("jobs/<str:job_id>/pause/", jobs.PauseApi.as_view()),
    path("jobs/<str:job_id>/resume/", jobs.ResumeApi.as_view()),
    path("jobs/<str:job_id>/change/", jobs.ChangeApi.as_view()),
    path("jobs/<str:job_id>/hold/", jobs.HoldApi.as_view()),
    path("jobs/<str:job_id>/release/", jobs.ReleaseApi.as_view()),
    path("jobs/<str:job_id>/events/", parts.EventsApi.as_view()),
    path("jobs/<str:job_id>/decisions/", decisions.DecisionsApi.as_view()),
    path("jobs/<str:job_id>/similar/", similar.SimilarApi.as_view()),
    path("jobs/<str:job_id>/failure/", failures.FailureApi.as_view()),
    path("jobs/<str:job_id>/questions/", failures.QuestionsApi.as_view()),
    path("jobs/<str:job_id>/metrics/", parts.MetricsApi.as_view()),
    path("jobs/<str:job_id>/logs/", parts.LogsApi.as_view()),
    path("jobs/<str:job_id>/artifacts/", parts.ArtifactsApi.as_view()),
    path("jobs/<str:job_id>/artifacts/<path:path>", parts.ArtifactApi.as_view(), name="artifact"),
    path("intents/", intents.IntentsApi.as_view()),
    path("imports/", script_imports.ScriptImportsApi.as_view()),
    path("imports/<int:tree_id>/", script_imports.ScriptImportApi.as_view()),
    path("recommendations/", recommendations.RecommendationsApi.as_view()),
    path("recommendations/check/", recommendations.CheckApi.as_view()),
    path("models/", catalogue.ModelsApi.as_view()),
    path("models/<path:name>/", catalogue.ModelApi.as_view()),
    path("gpus/", catalogue.GpusApi.as_view()),
    path("gpus/<path:name>/", catalogue.GpuApi.as_view()),
    path("executions/", executions.ExecutionsApi.as_view()),
    path("executions/import/", executions.ImportApi.as_view()),
    path("executions.csv", executions.ExecutionsCsvApi.as_view()),
    path("predictors/", recommendations.PredictorsApi.as_view()),
    path("predictors/roll-back/", recommendations.RollBackApi.as_view()),
    path("predictors/<int:number>/promote/", recommendations.PromoteApi.as_view()),
    path("nodes/", nodes.NodesApi.as_view()),
    path("nodes/join-tokens/", nodes.JoinTokensApi.as_view()),
    path("nodes/<str:node_id>/", nodes.NodeApi.as_view()),
    path("nodes/<str:node_id>/drain/", nodes.DrainApi.as_view()),
    path("nodes/<str:node_id>/resume/", nodes.ResumeNodeApi.as_view()),
    path("nodes/<str:node_id>/price/", nodes.PriceApi.as_view()),
    path("nodes/<str:node_id>/remove/", nodes.RemoveNodeApi.as_view()),
    path("nodes/<str:node_id>/calibrations/", calibrations.CalibrationsApi.as_view()),
    path("nodes/<str:node_id>/calibrations/<str:calibration_id>/", calibrations.CalibrationApi.as_view()),
    path(
        "nodes/<str:node_id>/calibrations/<str:calibration_id>/cancel/",
        calibrations.CancelCalibrationApi.as_view(),
    ),
    path("policy/", policy.PolicyApi.as_view()),
    path("spending/", spending.SpendingApi.as_view()),
    path("simulations/", simulations.SimulationsApi.as_view()),
    path("simulations/<str:simulation_id>/", simulations.SimulationApi.as_view()),
    path("users/", users.UsersApi.as_view()),
    path("users/<int:user_id>/", users.UserApi.as_view()),
    path("users/<int:user_id>/change/", users.ChangeUserApi.as_view()),
    path("users/<int:user_id>/deactivate/", users.DeactivateApi.as_view()),
    path("users/<int:user_id>/activate/", users.ActivateApi.as_view()),
    path("users/<int:user_id>/password/", users.PasswordApi.as_view()),
    path("users/<int:user_id>/limits/", limits.LimitsApi.as_view()),
    path("users/<int:user_id>/tokens/", users.UserTokensApi.as_view()),
    path("users/<int:user_id>/tokens/revoke/", users.RevokeUserTokensApi.as_view()),
    path("users/<int:user_id>/tokens/<int:token_id>/revoke/", users.RevokeUserTokenApi.as_view()),
    path("windows/", windows.WindowsApi.as_view()),
    path("windows/<int:window_id>/", windows.WindowApi.as_view()),
    path("limits/", limits.DefaultLimitsApi.as_view()),
    path("teams/", teams.TeamsApi.as_view()),
    path("teams/<int:team_id>/", teams.TeamApi.as_view()),
    path("teams/<int:team_id>/quotas/", limits.QuotasApi.as_view()),
    path("teams/<int:team_id>/usage/", limits.UsageApi.as_view()),
    path("teams/<int:team_id>/rename/", teams.RenameApi.as_view()),
    path("teams/<int:team_id>/language-model/", teams.LanguageModelApi.as_view()),
    path("teams/<int:team_id>/delete/", teams.DeleteTeamApi.as_view()),
    path("teams/<int:team_id>/members/", teams.MembersApi.as_view()),
    path("teams/<int:team_id>/members/<int:member_id>/role/", teams.RoleApi.as_view()),
    path("teams/<int:team_id>/members/<int:member_id>/remove/", teams.RemoveMemberApi.as_view()),
    path("audit/", audit.AuditApi.as_view()),
    path("me/", me.MeApi.as_view()),
    path("tokens/", me.TokensApi.as_view()),
    path("tokens/<int:token_id>/revoke/", me.RevokeApi.as_view()),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", docs.SwaggerApi.as_view(), name="api-docs"),
    re_path(r"^.*$", docs.unknown),
]
