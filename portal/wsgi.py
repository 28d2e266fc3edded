"""The WSGI application that gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
os.environ.setdefault("STATEMENT_TIMEOUT_S", "4")  # somebody waits: 503 within 5 s, and Retry-After
application = get_wsgi_application()
