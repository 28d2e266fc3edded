"""The web server's options: `gunicorn portal.wsgi -c python:portal.configuration.gunicorn`."""

worker_class = "gthread"
threads = 8
# Longer than agents ever wait between two syncs (a refusal may ask for 60 s): else a sync meets a connection
# that is just being closed.
keepalive = 75
timeout = 60
graceful_timeout = 10
control_socket_disable = True
