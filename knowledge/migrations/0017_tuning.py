from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("knowledge", "0016_errors_as_shares"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="execution", name="execution_kind"),
        migrations.RenameField(model_name="execution", old_name="method", new_name="tuning"),
        migrations.AddIndex(
            model_name="execution",
            index=models.Index(fields=["source", "model_name", "tuning", "gpu_model"], name="execution_kind"),
        ),
    ]
