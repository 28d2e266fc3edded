"""Pages."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path
from django.views.generic import RedirectView

from portal.web import analytics, home, job, jobs, nodes, predictions, queue, recommendation, submit, uploads

urlpatterns = [
    path("favicon.ico", RedirectView.as_view(url=f"{settings.STATIC_URL}img/icon.svg")),
    path("", home.home, name="home"),
    path(
        "login/",
        LoginView.as_view(template_name="login.html", redirect_authenticated_user=True),
        name="login",
    ),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("jobs/", jobs.job_list, name="jobs"),
    path("jobs/new/", submit.new_job, name="job-new"),
    path("jobs/new/upload/", uploads.upload, name="job-upload"),
    path("jobs/new/file/", uploads.file_report, name="job-file"),
    path("jobs/new/advice/", recommendation.advice, name="job-advice"),
    path("jobs/<str:job_id>/", job.job_detail, name="job"),
    path("jobs/<str:job_id>/live/", job.job_live, name="job-live"),
    path("jobs/<str:job_id>/tabs/<str:tab>/", job.job_tab, name="job-tab"),
    path("jobs/<str:job_id>/charts/<str:chart>/", job.job_chart, name="job-chart"),
    path("jobs/<str:job_id>/<str:verb>/", job.job_verb, name="job-verb"),
    path("queue/", queue.queue, name="queue"),
    path("analytics/", analytics.analytics, name="analytics"),
    path("analytics/predictions/", predictions.predictions, name="predictions"),
    path("analytics/predictions/rollback/", predictions.rollback, name="predictor-rollback"),
    path("analytics/predictions/<int:number>/promote/", predictions.promote, name="predictor-promote"),
    path("nodes/", nodes.node_list, name="nodes"),
    path("nodes/join-token/", nodes.join_token, name="join-token"),
    path("nodes/<str:node_id>/<str:verb>/", nodes.node_verb, name="node-verb"),
]
