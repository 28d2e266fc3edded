from itertools import groupby, pairwise

from django.db import migrations, models

BATCH = 500


def shown(state, stop_for):
    """The state that people saw, as it was when this migration was written."""
    if state == "stopping":
        return {"cancel": "cancelled", "pause": "pausing", "drain": "running"}.get(stop_for, "queued")
    return {"assigned": "queued", "starting": "running"}.get(state, state)


def from_events(apps, schema_editor):
    jobs = apps.get_model("scheduler", "Job").objects
    events = apps.get_model("scheduler", "JobEvent").objects.filter(kind__in=("state", "submitted"))
    rows = events.order_by("job_id", "number").values_list("job_id", "new", "stop_for", "at")
    changed = []
    for job_id, of_job in groupby(rows.iterator(), key=lambda row: row[0]):
        story = [(shown(state, stop_for), at) for _, state, stop_for, at in of_job]
        waited = sum(
            max(0.0, (end - start).total_seconds()) for (was, start), (_, end) in pairwise(story) if was == "queued"
        )
        since = story[0][1]
        for (was, _), (now, at) in pairwise(story):
            since = since if now == was else at
        changed.append(jobs.model(id=job_id, shown_since=since, waited_s=waited))
        if len(changed) == BATCH:
            jobs.bulk_update(changed, ["shown_since", "waited_s"])
            changed = []
    jobs.bulk_update(changed, ["shown_since", "waited_s"])


class Migration(migrations.Migration):

    dependencies = [("scheduler", "0021_attempt_warnings")]

    operations = [
        migrations.AddField("job", "shown_since", models.DateTimeField(null=True)),
        migrations.AddField("job", "waited_s", models.FloatField(db_default=0.0, default=0.0)),
        migrations.RunPython(from_events, migrations.RunPython.noop),
    ]
