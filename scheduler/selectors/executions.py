"""Reading of executions.

Which measurements a person sees is decided here and nowhere else.
"""

from __future__ import annotations

from django.db.models import Q, QuerySet

from knowledge.models import Execution
from portal.accounts.models import User
from scheduler.models import Attempt
from scheduler.selectors.jobs import visible_jobs


def visible_executions(user: User) -> QuerySet[Execution]:
    """Return imported executions and those of jobs that the user may see.

    Administrators see all.
    """
    if user.is_admin:
        return Execution.objects.all()
    attempts = Attempt.objects.filter(job__in=visible_jobs(user).values("pk"))
    return Execution.objects.filter(Q(attempt_id__isnull=True) | Q(attempt_id__in=attempts.values("pk")))
