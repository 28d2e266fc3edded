"""The WSGI application that gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application

from portal.serving.whole import with_whole_bodies

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
os.environ.setdefault("STATEMENT_TIMEOUT_S", "4")  # somebody waits: 503 within 5 s, and Retry-After
application = with_whole_bodies(get_wsgi_application())
