"""The addresses of pages, of their parts and of what people do there."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.views import LogoutView
from django.urls import path
from django.views.generic import RedirectView

from portal.http.entered import SignIn
from portal.web import home, intents
from portal.web.admin import catalogue, shadow
from portal.web.analysis import logs_elsewhere, predictions, simulations, spending
from portal.web.jobs import files, job, jobs, new, recommendation, script_import, uploads
from portal.web.jobs.changes import offers
from portal.web.markets import markets
from portal.web.navigation import PAGES
from portal.web.nodes import calibrations, node, nodes, windows
from portal.web.people import client, device, limits, people, service_accounts, teams, tokens

urlpatterns = [
    path("favicon.ico", RedirectView.as_view(url=f"{settings.STATIC_URL}img/icon.svg")),
    path("", home.home, name="home"),
    path("login/", SignIn.as_view(), name="login"),
    *(path(page.address, page.view, name=page.name) for page in PAGES),
    path("logout/", LogoutView.as_view(), name="logout"),
    path(
        "password/",
        tokens.OwnPassword.as_view(),
        name="password",
    ),
    path("jobs/new/", new.new_job, name="job-new"),
    path("jobs/new/intent/", intents.say, name="job-intent"),
    path("jobs/import/", script_import.import_script, name="job-import"),
    path("jobs/import/<int:tree_id>/", script_import.kept_import, name="job-import-kept"),
    path("jobs/new/upload/", uploads.upload, name="job-upload"),
    path("jobs/new/file/", uploads.file_report, name="job-file"),
    path("jobs/new/advice/", recommendation.show, name="job-recommendation"),
    path("jobs/new/plans/", recommendation.plans, name="job-plans"),
    path("jobs/new/start/", new.ask, name="job-start"),
    path("jobs/new/start/<str:question_id>/", new.answer, name="job-start-answer"),
    path("arrays/<str:array_id>/cancel/", jobs.array_cancel, name="array-cancel"),
    path("jobs/<str:job_id>/", job.job_detail, name="job"),
    path("jobs/<str:job_id>/live/", job.job_live, name="job-live"),
    path("jobs/<str:job_id>/changes/", offers.job_changes, name="job-changes"),
    path("jobs/<str:job_id>/tabs/<str:tab>/", job.job_tab, name="job-tab"),
    path("jobs/<str:job_id>/charts/<str:chart>/", job.job_chart, name="job-chart"),
    path("jobs/<str:job_id>/<str:verb>/", job.job_verb, name="job-verb"),
    path("files/<str:file_id>/delete/", files.file_delete, name="file-delete"),
    path("markets/<int:market_id>/", markets.market_detail, name="market"),
    path("markets/<int:market_id>/remove/", markets.remove, name="market-remove"),
    path("windows/", windows.window_list, name="windows"),
    path("windows/<int:window_id>/remove/", windows.remove, name="window-remove"),
    path("users/limits/", limits.default_limits, name="limits"),
    path("users/<int:user_id>/", people.user_detail, name="user"),
    path("users/<int:user_id>/change/", people.user_change, name="user-change"),
    path("users/<int:user_id>/<str:verb>/", people.user_verb, name="user-verb"),
    path(
        "users/<int:user_id>/tokens/<int:token_id>/revoke/",
        people.user_token_revoke,
        name="user-token-revoke",
    ),
    path("teams/<int:team_id>/", teams.team_detail, name="team"),
    path("teams/<int:team_id>/<str:verb>/", teams.team_verb, name="team-verb"),
    path("teams/<int:team_id>/members/<int:member_id>/<str:verb>/", teams.member_verb, name="member-verb"),
    path("tokens/<int:token_id>/revoke/", tokens.token_revoke, name="token-revoke"),
    path("tokens/<int:token_id>/rotate/", tokens.token_rotate, name="token-rotate"),
    path("service-accounts/", service_accounts.account_list, name="service-accounts"),
    path("service-accounts/<int:account_id>/", service_accounts.account_detail, name="service-account"),
    path(
        "service-accounts/<int:account_id>/<str:verb>/",
        service_accounts.account_verb,
        name="service-account-verb",
    ),
    path(
        "service-accounts/<int:account_id>/tokens/<int:key_id>/<str:verb>/",
        service_accounts.account_token_verb,
        name="service-account-token",
    ),
    path("device/", device.device, name="device"),
    path("client/", client.client_line, name="client"),
    path("client/<str:wheel>", client.client_wheel, name="client-wheel"),
    path("logs/", logs_elsewhere.log_elsewhere, name="log-elsewhere"),
    path("history/<int:execution_id>/confirm/", logs_elsewhere.confirm, name="execution-confirm"),
    path("analytics/spending/", spending.spending, name="spending"),
    path("analytics/predictions/", predictions.predictions, name="predictions"),
    path("analytics/predictions/rollback/", predictions.rollback, name="predictor-rollback"),
    path("analytics/predictions/<int:number>/promote/", predictions.promote, name="predictor-promote"),
    path("catalogue/<str:kind>/add/", catalogue.add, name="catalogue-add"),
    path("catalogue/<str:kind>/delete/", catalogue.delete, name="catalogue-delete"),
    path("policy/shadow/", shadow.start, name="policy-shadow"),
    path("policy/shadow/end/", shadow.end, name="policy-shadow-end"),
    path("simulations/<str:simulation_id>/", simulations.simulation_detail, name="simulation"),
    path("nodes/join-token/", nodes.join_token, name="join-token"),
    path("nodes/<str:node_id>/", node.node_detail, name="node"),
    path("nodes/<str:node_id>/live/", node.node_live, name="node-live"),
    path("nodes/<str:node_id>/calibration/", calibrations.panel, name="node-calibration"),
    path("nodes/<str:node_id>/calibrate/", calibrations.calibrate, name="node-calibrate"),
    path(
        "nodes/<str:node_id>/calibrations/<str:calibration_id>/cancel/",
        calibrations.cancel,
        name="calibration-cancel",
    ),
    path("nodes/<str:node_id>/<str:verb>/", node.node_verb, name="node-verb"),
]
