"""The portal's own options, without what needs Django."""

from portal.configuration.gunicorn import *  # noqa: F403


def post_worker_init(worker: object) -> None:
    """No beat: there is no database. The application tells the signs."""
    from tests.portal.serving.application import signs_of

    worker.signs_of = signs_of  # type: ignore[attr-defined]
