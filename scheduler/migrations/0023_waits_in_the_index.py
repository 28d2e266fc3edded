from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("scheduler", "0022_shown_since_and_waited")]

    operations = [
        migrations.RemoveIndex("job", "job_started"),
        migrations.AddIndex(
            "job",
            models.Index(fields=["first_started_at"], include=("waited_s", "owner", "team"), name="job_started"),
        ),
    ]
