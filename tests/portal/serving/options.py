"""The portal's own options, without what needs Django."""

from portal.configuration.gunicorn import *  # noqa: F403


def post_worker_init(worker: object) -> None:
    """No beat: there is no database."""
