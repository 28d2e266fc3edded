"""`python -m trainer.agent`: the agent of one node."""

from __future__ import annotations

import logging
import resource
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType

from trainer.agent.claims.prepare import RunPreparation
from trainer.agent.errors import SetupError, UpgradeNeeded
from trainer.agent.executors.base import Executor, ExecutorOptions, LocalGpus
from trainer.agent.executors.table import EXECUTORS
from trainer.agent.link_test import with_links
from trainer.agent.logs import set_up
from trainer.agent.loop import EXIT_UPGRADE, Agent, node_facts
from trainer.agent.node.network import Site
from trainer.agent.node.notice import NoticeWatch
from trainer.agent.node.user import training_user
from trainer.agent.portal_api.client import Portal
from trainer.agent.portal_api.enrol import enrol, use_saved_token
from trainer.agent.settings import Settings, read_settings
from trainer.agent.speed_test import run_due
from trainer.agent.storage.folder import NodeFolder

log = logging.getLogger(__name__)

EXIT_SETUP = 2


def build(settings: Settings) -> Agent:
    """An enrolled agent that holds its folder. Raises SetupError, UpgradeNeeded."""
    portal = Portal(settings.portal, settings.ca)
    folder = NodeFolder(settings.dir)
    try:
        folder.prepare()
    except OSError as error:
        raise SetupError(f"--dir {settings.dir} cannot be used: {error}") from error
    folder.lock()
    folder.refuse_a_copy()
    executor = _executor(settings, folder)
    facts = node_facts(executor, settings, folder)
    if isinstance(executor, LocalGpus):
        executor.check(facts)
    if facts.has_gpus:
        for tuning, why in facts.cannot_train.items():
            log.warning("no jobs with this tuning come here", extra={"tuning": tuning, "reason": why})
    workshop = RunPreparation(
        folder=folder,
        command=settings.command,
        gpus=facts.gpus,
        cores=facts.cores,
        memory_bytes=facts.memory_bytes,
        site=Site(portal=settings.portal, address=settings.address, ports=settings.ports),
        local=isinstance(executor, LocalGpus),
        offline=settings.offline,
        models_limit_bytes=settings.models_limit_bytes,
        model_roots=settings.model_roots,
    )
    enrolled = use_saved_token(portal, folder)
    if isinstance(executor, LocalGpus) and settings.speed_test and (enrolled or settings.join_token):
        facts = replace(facts, speed_tests=run_due(facts, workshop, executor))
        facts = with_links(facts, workshop, executor)
    if not enrolled:
        enrol(portal, folder, settings, facts)
    return Agent(
        settings=settings, folder=folder, portal=portal, executor=executor, workshop=workshop, facts=facts,
        notice=NoticeWatch(settings.notice) if settings.notice else None,
    )  # fmt: skip


def _executor(settings: Settings, folder: NodeFolder) -> Executor:
    """The one that was asked for. Raises SetupError."""
    options = ExecutorOptions(
        folder=folder,
        user=training_user(settings.user, folder),
        slots=settings.slots,
        topology=settings.topology,
    )
    return EXECUTORS[settings.executor](options)


def run(settings: Settings) -> int:
    """Run an agent in this process until it is told to stop; returns the exit code."""
    _limit_resources()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a test must not outlive its agent
    try:
        agent = build(settings)
    except SetupError as error:
        log.error(str(error))
        return EXIT_SETUP
    except UpgradeNeeded as error:
        log.error("this agent is too old for the portal: upgrade it", extra={"error": str(error)})
        return EXIT_UPGRADE

    def ask_to_stop(_number: int, _frame: FrameType | None) -> None:
        agent.stops_asked += 1

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    try:
        return agent.run()
    finally:
        agent.close()


def _limit_resources() -> None:
    """Limit the resources of the agent and, by inheritance, of its trainings.

    There are no core dumps full of weights, and files enough for shards.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(65536, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    set_up()
    try:
        settings = read_settings(arguments)
    except SetupError as error:
        log.error(str(error))
        return EXIT_SETUP
    try:
        return run(settings)
    except KeyboardInterrupt:
        return 130  # while it was still enrolling: nothing runs yet


if __name__ == "__main__":
    sys.exit(main())
