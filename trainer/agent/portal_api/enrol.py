"""A node's identity: the token it got for its join token."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable

from trainer.agent.errors import PortalAway, PortalRefused, SetupError, TooMuch, Unauthorised
from trainer.agent.portal_api.client import Portal
from trainer.agent.settings import Settings
from trainer.agent.storage.folder import NodeFolder, read_json, write_json
from trainer.protocol import PROTOCOL, Enrol, NodeFacts

log = logging.getLogger(__name__)


def use_saved_token(portal: Portal, folder: NodeFolder) -> bool:
    """Go on with the identity of an earlier start, if it is one of this portal's."""
    saved = read_json(folder.token_file)
    if saved is None or saved.get("portal") != portal.url or not isinstance(saved.get("token"), str):
        return False
    portal.authorise(saved["token"])
    return True


def enrol(
    portal: Portal,
    folder: NodeFolder,
    settings: Settings,
    facts: NodeFacts,
    stopped: Callable[[], bool] = lambda: False,
) -> bool:
    """Exchange the join token for a node token and keep it.

    Waits while the portal is away. The node token is chosen here and written down first, so
    that asking again never makes a second node. False when stopped meanwhile. Raises SetupError
    if there is no join token or it is not accepted.
    """
    if not settings.join_token:
        raise SetupError(
            "this node is not enrolled at that portal: give a join token with --join or --join-file"
        )
    message = Enrol(
        join_token=settings.join_token,
        protocol=PROTOCOL,
        name=settings.name,
        facts=facts,
        node_token=_chosen_token(portal, folder),
    )
    pause_s = 0.5
    while not stopped():
        try:
            node, token = portal.enrol(message)
        except (Unauthorised, PortalRefused, TooMuch) as error:
            raise SetupError(
                f"the portal did not enrol this node; ask its admin for a new token ({error})"
            ) from error
        except PortalAway as error:
            log.warning("enrolment: trying again", extra={"error": str(error)})
            time.sleep(max(pause_s, error.retry_after_s))
            pause_s = min(2 * pause_s, 10.0)
        else:
            # A portal from before that gives a token of its own.
            write_json(folder.token_file, {"portal": portal.url, "node": node, "token": token})
            folder.enrolment_file.unlink(missing_ok=True)
            portal.authorise(token)
            log.info("enrolled", extra={"node": node})
            return True
    return False


def _chosen_token(portal: Portal, folder: NodeFolder) -> str:
    """The token of an enrolment that got no answer, or a new one."""
    enrolment = read_json(folder.enrolment_file)
    if enrolment and enrolment.get("portal") == portal.url and isinstance(enrolment.get("token"), str):
        return str(enrolment["token"])
    token = "fnode-" + secrets.token_urlsafe(32)
    try:
        write_json(folder.enrolment_file, {"portal": portal.url, "token": token})
    except OSError as error:
        raise SetupError(f"--dir {folder.root} cannot be used: {error}") from error
    return token
