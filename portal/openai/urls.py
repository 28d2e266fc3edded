"""Addresses of the contract, without a slash at their ends.

None redirects, which would turn POST into GET.
"""

from __future__ import annotations

from django.urls import path, re_path

from portal.openai import estimates, files, jobs, models, uploads, views

urlpatterns = [
    path("fine_tuning/jobs", jobs.JobsView.as_view()),
    path("fine_tuning/jobs/<str:job_id>", jobs.JobView.as_view()),
    path("fine_tuning/jobs/<str:job_id>/cancel", jobs.CancelView.as_view()),
    path("fine_tuning/jobs/<str:job_id>/pause", jobs.PauseView.as_view()),
    path("fine_tuning/jobs/<str:job_id>/resume", jobs.ResumeView.as_view()),
    path("fine_tuning/jobs/<str:job_id>/events", jobs.EventsView.as_view()),
    path("fine_tuning/jobs/<str:job_id>/checkpoints", jobs.CheckpointsView.as_view()),
    path("fine_tuning/jobs/<str:job_id>/explanation", jobs.ExplanationView.as_view()),
    path("fine_tuning/estimates", estimates.EstimatesView.as_view()),
    path("files", files.FilesView.as_view()),
    path("files/<str:file_id>", files.FileView.as_view()),
    path("files/<str:file_id>/content", files.ContentView.as_view()),
    path("uploads", uploads.UploadsView.as_view()),
    path("uploads/<str:upload_id>", uploads.UploadView.as_view()),
    path("uploads/<str:upload_id>/parts", uploads.PartsView.as_view()),
    path("uploads/<str:upload_id>/complete", uploads.CompleteView.as_view()),
    path("uploads/<str:upload_id>/cancel", uploads.CancelUploadView.as_view()),
    path("models", models.ModelsView.as_view()),
    path("models/<path:name>", models.ModelView.as_view()),
    re_path(r"^.*\Z", views.unknown),
]
