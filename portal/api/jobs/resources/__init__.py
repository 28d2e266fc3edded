"""Jobs as programs see them."""

from portal.api.jobs.resources.brief import JobBrief
from portal.api.jobs.resources.job import JobOut
from portal.api.jobs.resources.progress import EventOut, MetricOut
from portal.api.jobs.resources.promises import ChoiceOut, PromiseOut

__all__ = ["ChoiceOut", "EventOut", "JobBrief", "JobOut", "MetricOut", "PromiseOut"]
