"""The endpoint for node agents: install, enrol, sync, inputs, artifacts.

It is thin: parse, call, answer.
"""

from __future__ import annotations

import re
from typing import BinaryIO, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from portal import node_package
from portal.clock import database_now
from portal.http.downloads import download
from portal.nodes.endpoint import BadBody, address_of, body_of, endpoint, error, for_joining, for_node
from portal.serving.connection import BUFFERED_BYTES
from portal.wheels import BuildFailed, sha256_of
from scheduler.errors import ContentLost, NotFound
from scheduler.models import Claim, DatasetFile, Node
from scheduler.selectors.run_specs import input_source
from scheduler.services.files.storage import artifact_path
from scheduler.services.files.uploads import path_of
from scheduler.services.nodes.register import enrol_node, require_protocol
from scheduler.services.sync.artifacts import store_artifact
from scheduler.services.sync.claims import held_claim
from scheduler.services.sync.node_sync import sync_node
from trainer.protocol import to_json
from trainer.protocol_parsing import parse_enrol, parse_sync

SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_LOST = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def _protocol_first(body: object) -> None:
    """An old agent must hear that it is old, whatever else it says."""
    version = body.get("protocol") if isinstance(body, dict) else None
    if isinstance(version, int) and not isinstance(version, bool):
        require_protocol(version)


@endpoint("POST")
def enrol(request: HttpRequest) -> HttpResponseBase:
    """{join_token, protocol, name, facts} -> {node, node_token}."""
    body = body_of(request, largest=BUFFERED_BYTES)
    _protocol_first(body)
    node, token = enrol_node(message=parse_enrol(body), address=address_of(request), now=database_now())
    return JsonResponse({"node": node.pk, "node_token": token, "name": node.name}, status=201)


@endpoint("POST")
@for_node
def sync(request: HttpRequest, node: Node) -> HttpResponseBase:
    """Heartbeat, reports and question in one; see trainer.protocol.Sync and SyncReply."""
    body = body_of(request, largest=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    _protocol_first(body)
    reply = sync_node(node=node, message=parse_sync(body), now=database_now())
    return JsonResponse(to_json(reply))


@endpoint("GET")
@for_joining
def package(request: HttpRequest, wheel: str) -> HttpResponseBase:
    """The wheel for a new node, by its file name: pip reads name and version there."""
    try:
        file = node_package.wheel()
    except BuildFailed as failed:
        return error(503, "no_package", str(failed))
    if wheel != file.name:
        raise NotFound(f"This portal's nodes install {file.name}.")
    return download(request, file, sha256=sha256_of(file))


@endpoint("GET")
@for_joining
def constraints(_request: HttpRequest) -> HttpResponseBase:
    """The versions of what the wheel needs, one a line, for `pip install -c`."""
    return HttpResponse(node_package.constraints(), content_type="text/plain; charset=utf-8")


@endpoint("GET")
@for_node
def inputs(request: HttpRequest, node: Node, claim_id: str, name: str) -> HttpResponseBase:
    """Send a training file or a checkpoint's file to a node, or a piece of it.

    The node must hold the claim, and the claim must be live.
    """
    claim = _claim(request, node, claim_id)
    source = input_source(claim, name)
    if source is None:
        raise NotFound(f"This claim has no input {name}.")
    if isinstance(source, DatasetFile):
        path, sha256 = path_of(source.sha256), source.sha256
    else:
        claim_of_file, name_there, sha256 = source
        path = artifact_path(claim.attempt.job_id, claim_of_file, name_there)
    try:
        return download(request, path, sha256=sha256)
    except _LOST as missing:
        raise ContentLost(f"The content of input {name} is missing at the portal.") from missing


@endpoint("PUT")
@for_node
def artifacts(request: HttpRequest, node: Node, claim_id: str, path: str) -> HttpResponseBase:
    """Store one file of a live claim; the header X-Content-SHA256 must match the body."""
    claim = _claim(request, node, claim_id)
    sha256 = request.headers.get("X-Content-SHA256", "")
    if not SHA256.match(sha256):
        raise BadBody("The header X-Content-SHA256 must hold 64 hexadecimal digits.")
    store_artifact(claim=claim, path=path, sha256=sha256, stream=cast(BinaryIO, request), now=database_now())
    return HttpResponse(status=204)


def _claim(request: HttpRequest, node: Node, claim_id: str) -> Claim:
    fence = request.GET.get("fence", "")
    if not fence.isascii() or not fence.isdigit() or len(fence) > 12:
        raise BadBody("The query parameter fence must be a whole number.")
    return held_claim(node=node, claim_id=claim_id, fence=int(fence), now=database_now())
