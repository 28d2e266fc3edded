import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    # A fresh database takes this one alone; one that an earlier version made goes on with those it replaces.
    replaces = [
        ('knowledge', '0001_initial'),
        ('knowledge', '0002_model_parallel'),
        ('knowledge', '0003_catalog_entry'),
        ('knowledge', '0004_track_record'),
        ('knowledge', '0005_promotion'),
        ('knowledge', '0006_reentrant_checkpointing'),
        ('knowledge', '0007_link_of_added_gpus'),
        ('knowledge', '0008_chunked_loss'),
        ('knowledge', '0009_execution_settings'),
        ('knowledge', '0010_catalog_entries_plural'),
        ('knowledge', '0011_promised_elsewhere'),
        ('knowledge', '0012_script_readings'),
        ('knowledge', '0013_link_level'),
        ('knowledge', '0014_execution_kept_by'),
        ('knowledge', '0015_log_format'),
        ('knowledge', '0016_errors_as_shares'),
    ]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='TrackRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField(unique=True)),
                ('runs', models.PositiveIntegerField()),
                ('coverage', models.FloatField(blank=True, help_text='share inside their 80 % intervals', null=True)),
                ('median_error', models.FloatField(blank=True, null=True)),
                ('alarm', models.CharField(blank=True, help_text='what has drifted, empty if nothing', max_length=300)),
            ],
            options={
                'ordering': ['-day'],
            },
        ),
        migrations.CreateModel(
            name='CatalogEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('model', 'Model'), ('gpu', 'GPU')], max_length=10)),
                ('name', models.CharField(max_length=300)),
                ('facts', models.JSONField()),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'catalog entries',
                'ordering': ['kind', 'name'],
                'constraints': [models.UniqueConstraint(fields=('kind', 'name'), name='one_catalog_entry_a_name')],
            },
        ),
        migrations.CreateModel(
            name='LogFormat',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('shape', models.JSONField(blank=True, null=True)),
                ('samples', models.JSONField(default=list)),
                ('model_state', models.CharField(choices=[('', 'Unasked'), ('asked', 'Asked'), ('reading', 'Reading'), ('done', 'Done'), ('failed', 'Failed')], db_index=True, max_length=10)),
                ('model_note', models.CharField(blank=True, max_length=300)),
                ('asked_at', models.DateTimeField()),
                ('answered_by', models.CharField(blank=True, help_text='host of the language model', max_length=300)),
                ('asked_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='PredictorVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(unique=True)),
                ('path', models.CharField(max_length=200)),
                ('sha256', models.CharField(max_length=64)),
                ('metrics', models.JSONField(default=dict)),
                ('rows', models.PositiveIntegerField()),
                ('last_execution', models.PositiveBigIntegerField(default=0, help_text='newest row it was trained on')),
                ('created_at', models.DateTimeField()),
                ('promoted_at', models.DateTimeField(blank=True, null=True)),
                ('active', models.BooleanField(default=False)),
                ('reason', models.CharField(blank=True, help_text='why it was or was not promoted', max_length=300)),
            ],
            options={
                'ordering': ['-number'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('active', True)), fields=('active',), name='one_active_predictor')],
            },
        ),
        migrations.CreateModel(
            name='Promotion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('undone_at', models.DateTimeField(blank=True, null=True)),
                ('by', models.ForeignKey(blank=True, help_text='null: training did', null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='promotions', to='knowledge.predictorversion')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='SourceTree',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('command', models.TextField(blank=True)),
                ('files', models.JSONField()),
                ('left_out', models.JSONField(default=dict)),
                ('texts', models.BinaryField()),
                ('size', models.PositiveIntegerField(help_text='bytes of all texts')),
                ('read_at', models.DateTimeField(db_index=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='source_trees', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('owner', 'digest'), name='one_source_tree_a_digest')],
            },
        ),
        migrations.CreateModel(
            name='ScriptReading',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reader_version', models.CharField(max_length=16)),
                ('rules', models.JSONField(help_text='what the rules read')),
                ('added', models.JSONField(default=dict, help_text='values of the language model, by field')),
                ('wanted', models.JSONField(default=list, help_text='fields that the language model is asked for')),
                ('model_state', models.CharField(blank=True, choices=[('', 'Unasked'), ('asked', 'Asked'), ('reading', 'Reading'), ('done', 'Done'), ('failed', 'Failed')], db_index=True, max_length=10)),
                ('model_note', models.CharField(blank=True, max_length=300)),
                ('asked_at', models.DateTimeField(blank=True, null=True)),
                ('tree', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='reading', to='knowledge.sourcetree')),
            ],
        ),
        migrations.CreateModel(
            name='Execution',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField()),
                ('attempt_id', models.UUIDField(blank=True, null=True, unique=True)),
                ('source', models.CharField(default='own', max_length=60)),
                ('origin', models.CharField(blank=True, max_length=100)),
                ('row_digest', models.CharField(blank=True, max_length=64, null=True, unique=True)),
                ('config_hash', models.CharField(db_index=True, max_length=64)),
                ('model_name', models.CharField(max_length=300)),
                ('method', models.CharField(max_length=20)),
                ('gpu_model', models.CharField(max_length=100)),
                ('number_gpus', models.PositiveIntegerField()),
                ('number_nodes', models.PositiveIntegerField(default=1)),
                ('tokens_per_sample', models.PositiveIntegerField()),
                ('per_device_batch_size', models.PositiveIntegerField(help_text='0: not a whole number, refused')),
                ('gradient_accumulation_steps', models.PositiveIntegerField(default=1)),
                ('effective_batch_size', models.PositiveIntegerField()),
                ('precision', models.CharField(blank=True, max_length=20, null=True)),
                ('quantization', models.CharField(blank=True, max_length=20, null=True)),
                ('lora_r', models.PositiveIntegerField(blank=True, null=True)),
                ('lora_alpha', models.PositiveIntegerField(blank=True, null=True)),
                ('optimizer_state', models.CharField(blank=True, max_length=20, null=True)),
                ('flash_attention', models.BooleanField(blank=True, null=True)),
                ('gradient_checkpointing', models.BooleanField(blank=True, null=True)),
                ('reentrant_checkpointing', models.BooleanField(blank=True, null=True)),
                ('fast_kernels', models.BooleanField(blank=True, null=True)),
                ('padding_free', models.BooleanField(blank=True, null=True)),
                ('chunked_loss', models.BooleanField(blank=True, null=True)),
                ('expert_parallel', models.PositiveIntegerField(blank=True, null=True)),
                ('model_parallel', models.PositiveIntegerField(blank=True, null=True)),
                ('sharding', models.CharField(blank=True, max_length=20, null=True)),
                ('network', models.CharField(blank=True, max_length=20, null=True)),
                ('software', models.CharField(blank=True, max_length=200, null=True)),
                ('run_protocol', models.CharField(blank=True, max_length=60, null=True)),
                ('settings', models.JSONField(db_default={}, default=dict, help_text='fields of Config without a column')),
                ('link_level', models.CharField(blank=True, help_text='how close its GPUs lay in their nodes', max_length=10, null=True)),
                ('padded_tokens', models.FloatField(blank=True, help_text='mean tokens of a row as processed', null=True)),
                ('status', models.CharField(choices=[('ok', 'Ok'), ('oom', 'out of memory'), ('failed', 'Failed'), ('refused', 'refused by a launch rule')], max_length=20)),
                ('tokens_per_second', models.FloatField(blank=True, help_text='whole job', null=True)),
                ('runtime_s', models.FloatField(blank=True, help_text='only where it is a true duration', null=True)),
                ('startup_s', models.FloatField(blank=True, null=True)),
                ('peak_memory_fraction', models.FloatField(blank=True, help_text='0 to 1, highest GPU', null=True)),
                ('peak_memory_bytes', models.BigIntegerField(blank=True, help_text='of one GPU', null=True)),
                ('learn', models.BooleanField(default=True)),
                ('learn_validity', models.BooleanField(default=True, help_text='failures of this source are published too')),
                ('flag_reason', models.CharField(blank=True, max_length=300)),
                ('predicted', models.JSONField(blank=True, help_text='the promise it was run under', null=True)),
                ('promised_elsewhere', models.JSONField(blank=True, help_text='the promise at submission, of a run that was placed elsewhere', null=True)),
                ('predictor_version', models.PositiveIntegerField(blank=True, null=True)),
                ('kept_by', models.ForeignKey(blank=True, help_text='who kept it from a log', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['source', 'model_name', 'method', 'gpu_model'], name='execution_kind')],
                'constraints': [models.CheckConstraint(condition=models.Q(('tokens_per_second__isnull', True), ('tokens_per_second__gt', 0), _connector='OR'), name='execution_rate_is_positive'), models.CheckConstraint(condition=models.Q(('status', 'ok'), ('runtime_s__isnull', True), _connector='OR'), name='execution_runtime_needs_success')],
            },
        ),
    ]
