"""All settings of the portal. The environment is read here and nowhere else.

Defaults suit one machine: SQLite and a private broker under DATA_DIR. Production sets SECRET_KEY,
DATABASE_URL, REDIS_URL, ALLOWED_HOSTS and SECURE=1 (docs/operations.md).
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

import environ
from kombu import Queue

from portal.configuration import api_description, celery, content_security, language, logs, origins, rates
from portal.configuration.caches import caches
from portal.configuration.database import database

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / "var"))).resolve()
DEBUG = env.bool("DEBUG", default=False)
SECURE = env.bool("SECURE", default=False)  # behind TLS: secure cookies, HSTS
TRUSTED_PROXIES = env.int("TRUSTED_PROXIES", default=1 if SECURE else 0)


def _secret_key() -> str:
    """Return the secret key.

    It comes from the environment, else it is made on first use and kept in DATA_DIR (mode 600).
    """
    if key := env.str("SECRET_KEY", default=""):
        return str(key)
    if SECURE:
        raise environ.ImproperlyConfigured("SECRET_KEY is missing: set it to a long random text")
    path = DATA_DIR / "secret_key"
    if not path.exists():
        DATA_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(50))
    return path.read_text().strip()


SECRET_KEY = _secret_key()
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_FAILURE_VIEW = "portal.http.error_pages.forbidden"
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

# Pages of these origins may ask with a token, never with a session.
CORS_ALLOWED_ORIGINS = env.list("CORS_ALLOWED_ORIGINS", default=[])
CORS_URLS_REGEX = origins.PATHS
CORS_ALLOW_HEADERS = origins.SENT_HEADERS
CORS_EXPOSE_HEADERS = origins.READ_HEADERS

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_filters",
    "django_htmx",
    "corsheaders",
    "axes",
    "csp",
    "portal",
    "portal.accounts",
    "portal.events",
    "portal.web",
    "knowledge",
    "scheduler",
]

MIDDLEWARE = [
    "portal.http.middleware.client_address_middleware",
    "portal.http.middleware.request_id_middleware",
    "portal.http.middleware.version_middleware",
    "corsheaders.middleware.CorsMiddleware",
    "portal.api.common.compression.CompressionMiddleware",
    "portal.api.common.throttles.rate_limit_middleware",
    "portal.http.middleware.cache_middleware",
    "portal.http.middleware.overload_middleware",
    "portal.http.middleware.full_disk_middleware",
    "portal.http.middleware.plain_address_middleware",
    "portal.http.middleware.tls_middleware",
    "portal.http.middleware.api_key_middleware",
    "portal.http.middleware.hint_middleware",
    "portal.limits.guesses.guess_middleware",
    "portal.http.middleware.form_address_middleware",
    "portal.http.middleware.signed_out_middleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "portal.limits.bodies.body_middleware",
    "portal.http.cut_bodies.CutBodyMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "axes.middleware.AxesMiddleware",
    "portal.http.middleware.time_zone_middleware",
    "portal.http.entered.ended_session_middleware",
]

ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
AUTH_USER_MODEL = "accounts.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "portal.accounts.backends.PeopleBackend",
]
PASSWORD_HASHERS = ["portal.accounts.hashing.BoundedHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
TOKEN_DAYS = env.int("TOKEN_DAYS", default=90)  # of an API token for which nobody names an end
TOKEN_MAX_DAYS = env.int("TOKEN_MAX_DAYS", default=0)  # the longest that one may live; 0: for ever
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_CALLABLE = "portal.http.error_pages.locked_out"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.ops.demo.marker.context",
                "portal.web.navigation.context",
            ]
        },
    }
]

DATABASES: dict[str, dict[str, Any]] = {
    "default": database(
        env.db_url("DATABASE_URL", default=f"sqlite:///{DATA_DIR / 'portal.sqlite3'}"),
        test_file=DATA_DIR / "test.sqlite3",
        lock_s=env.float("LOCK_TIMEOUT_S", default=15.0),
        idle_s=env.float("IDLE_TRANSACTION_TIMEOUT_S", default=30.0),
        statement_s=env.float("STATEMENT_TIMEOUT_S", default=30.0),
    )
}

# Some indexes carry more columns than their key on PostgreSQL; SQLite does without them.
SILENCED_SYSTEM_CHECKS = ["models.W040"]

LANGUAGE_CODE, USE_I18N = "en-gb", False
TIME_ZONE, USE_TZ = env.str("TIME_ZONE", default="UTC"), True

# Of all prices and costs, shown behind every amount; empty: amounts stand alone.
CURRENCY = env.str("CURRENCY", default="").strip()

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "portal.http.static_files.PackageFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
# Without collectstatic the files come from their packages; with it, compressed from STATIC_ROOT.
WHITENOISE_USE_FINDERS = not (STATIC_ROOT / "bootstrap").is_dir()
WHITENOISE_MAX_AGE = 3600

# Uploads are streamed to disk by digest; the limit protects the disk, not memory.
MAX_UPLOAD_BYTES = env.int("MAX_UPLOAD_BYTES", default=2_000_000_000)
STORAGE_QUOTA_BYTES = env.int("STORAGE_QUOTA_BYTES", default=50_000_000_000)  # of a person's uploads and jobs
JOB_LOG_BYTES = env.int("JOB_LOG_BYTES", default=32_000_000)  # that are kept of the logs of one job
MAX_ARTIFACT_BYTES = env.int("MAX_ARTIFACT_BYTES", default=200_000_000_000)
MAX_JSON_BYTES = 1_000_000
MAX_FORM_BYTES = 2_000_000  # of any body but an upload; strangers send less
DATA_UPLOAD_MAX_MEMORY_SIZE = 8_000_000  # a node's sync carries up to 500 reports
FILE_UPLOAD_MAX_MEMORY_SIZE = MAX_FORM_BYTES  # what anybody may send never reaches the disk
FILE_UPLOAD_TEMP_DIR = None
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "portal.http.unnamed_files.NamelessFileHandler",
]

X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = SECURE
if SECURE:  # browsers take such cookies from this host alone, by https
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
SECURE_HSTS_SECONDS = 31_536_000 if SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SECURE
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SECURE else None
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
CONTENT_SECURITY_POLICY = content_security.POLICY

RATE_LIMIT = env.str("RATE_LIMIT", default="1200/min")  # of a person
# Of each token: half of that, so that one program leaves room for others.
TOKEN_RATE_LIMIT = env.str("TOKEN_RATE_LIMIT", default=rates.half(RATE_LIMIT))
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.accounts.authentication.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["portal.accounts.permissions.Scoped"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.common.parsers.StrictJSONParser"],
    "DEFAULT_THROTTLE_CLASSES": [
        "portal.api.common.throttles.PersonThrottle",
        "portal.api.common.throttles.TokenThrottle",
        "portal.api.common.throttles.AnonThrottle",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "portal.api.common.schema.ApiSchema",
    "URL_FORMAT_OVERRIDE": None,
    "EXCEPTION_HANDLER": "portal.api.common.errors.handle",
    "NON_FIELD_ERRORS_KEY": "body",
    "NUM_PROXIES": 0,  # portal.http.middleware has found the client's address
    "DEFAULT_THROTTLE_RATES": {"user": RATE_LIMIT, "token": TOKEN_RATE_LIMIT, "anon": "60/min"},
}
SPECTACULAR_SETTINGS = api_description.SETTINGS

# Broker and workers. Messages are hints; the database is the truth (docs/architecture.md).
REDIS_URL = env.str("REDIS_URL", default="")
BROKER_DIR = DATA_DIR / "broker"
_BROKER_GIVEN = env.str("CELERY_BROKER_URL", default=REDIS_URL)
CELERY_BROKER_URL = _BROKER_GIVEN or f"redis+socket://{BROKER_DIR / 'broker.sock'}?virtual_host=0"
CELERY_BROKER_TRANSPORT_OPTIONS = celery.transport_options(CELERY_BROKER_URL, BROKER_DIR)
CACHES = caches(_BROKER_GIVEN)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_TASK_QUEUES = [Queue("control"), Queue("work"), Queue("predict")]
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat-schedule")
TICK_EVERY_S = env.float("TICK_EVERY_S", default=1.0)
SWEEP_EVERY_S = env.float("SWEEP_EVERY_S", default=30.0)
MARKET_EVERY_S = env.float("MARKET_EVERY_S", default=30.0)  # how often markets are looked at and asked
CELERY_BEAT_SCHEDULE = celery.beat_schedule(
    tick_every_s=TICK_EVERY_S, sweep_every_s=SWEEP_EVERY_S, market_every_s=MARKET_EVERY_S
)
HINT_TIMEOUT_S = 0.5

# Leases and deadlines, seconds (docs/architecture.md, "Reliability"). Tests set them to a few seconds.
POLICY = env.str("POLICY", default="easy")
MAX_NODES_PER_JOB = env.int("MAX_NODES_PER_JOB", default=1)  # more only where nodes reach each other
SYNC_EVERY_S = env.float("SYNC_EVERY_S", default=1.0)
NODE_SUSPECT_S = env.float("NODE_SUSPECT_S", default=60.0)  # silent for longer: no new starts
NODE_LOST_S = env.float("NODE_LOST_S", default=90.0)  # silent for longer: lost, its attempts end
NODE_BLOCKED_S = env.float("NODE_BLOCKED_S", default=600.0)  # after three declined starts, or three losses
DECLINE_BACKOFF_S = env.float("DECLINE_BACKOFF_S", default=60.0)  # how long a job first keeps away
NODE_STOPS_S = env.float("NODE_STOPS_S", default=900.0)  # --lease-stop of agents: then they stop
ASSIGNED_TIMEOUT_S = env.float("ASSIGNED_TIMEOUT_S", default=60.0)
STARTING_TIMEOUT_S = env.float("STARTING_TIMEOUT_S", default=600.0)
STOP_GRACE_S = env.float("STOP_GRACE_S", default=60.0)
WINDOW_LEAD_S = env.float("WINDOW_LEAD_S", default=120.0)
FORECAST_CPU_S = env.float("FORECAST_CPU_S", default=8.0)  # for playing the queue ahead once
SPOT_PERIOD_S = env.float("SPOT_PERIOD_S", default=1800.0)  # jobs with a deadline are decided once in it
SPOT_DECIDER = env.str("SPOT_DECIDER", default="")  # the way of deciding for all jobs; empty: learnt
# Provisioners rent nodes in a market: name -> command and arguments (docs/spot.md).
PROVISIONERS: dict[str, list[str]] = env.json("PROVISIONERS", default={})
HANG_AFTER_S = env.float("HANG_AFTER_S", default=1800.0)
CHECKPOINT_EVERY_S = env.float("CHECKPOINT_EVERY_S", default=60.0)
CHECKPOINT_KEEP_DAYS = env.float("CHECKPOINT_KEEP_DAYS", default=7.0)  # after a failure, the furthest
CHECKPOINT_UPLOAD_BYTES = env.int("CHECKPOINT_UPLOAD_BYTES", default=2_000_000_000)
DECIDE_FOR_S = env.float("DECIDE_FOR_S", default=20.0)  # a decision that takes longer is given up
DECISION_KEEP_DAYS = env.float("DECISION_KEEP_DAYS", default=30.0)  # with what they were made of; the oldest
DECISION_KEEP_BYTES = env.int("DECISION_KEEP_BYTES", default=1_000_000_000)  # go earlier beyond this
TICK_TAKEOVER_S = env.float("TICK_TAKEOVER_S", default=10.0)  # a tick older than this may be replaced
CHANGES_PER_TICK = env.int("CHANGES_PER_TICK", default=50)  # of each: starts, losses, ends of the overdue
CHANGES_FOR_S = env.float("CHANGES_FOR_S", default=3.0)  # and for how long; the next tick does the rest
SIMULATION_LEASE_S = env.float("SIMULATION_LEASE_S", default=30.0)  # longer than any decision of a policy
INFRASTRUCTURE_RETRIES, OOM_RETRIES = 5, 1

# Where `hub:` histories and the config.json of added models are read from.
HF_ENDPOINT = env.str("HF_ENDPOINT", default="").rstrip("/") or "https://huggingface.co"
HF_HUB_OFFLINE = env.bool("HF_HUB_OFFLINE", default=False)  # True: base models are not looked up there
HF_TOKEN = env.str("HF_TOKEN", default="")  # with it, private models are found as well
LANGUAGE_SERVERS = {  # by purpose; None: off
    "reader": language.server(
        env.str("READER_URL", default=""),
        env.str("READER_MODEL", default=""),
        env.str("READER_KEY_FILE", default=""),
    ),
    "intent": language.server(
        env.str("INTENT_URL", default=""),
        env.str("INTENT_MODEL", default=""),
        env.str("INTENT_KEY_FILE", default=""),
    ),
}
# Below these alone a base model may be named by its path; agents have such a list of their own.
MODEL_ROOTS = [Path(root) for root in env.list("MODEL_ROOTS", default=[])]

LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
LOGGING = logs.logging(LOG_LEVEL)
