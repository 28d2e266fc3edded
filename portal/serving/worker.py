"""gunicorn's threaded worker, whose threads never wait for a client.

They only answer (docs/adr/0014).
"""

from __future__ import annotations

import resource
import selectors
import socket
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Any

from gunicorn.errors import ConfigError
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from portal.serving.connection import HttpConnection, LengthMissing
from portal.serving.pace import TransferPace
from portal.serving.parking import ParkingLot, Signs, Turn, Wait, turn
from portal.serving.queued import slow_s, waited_s
from portal.serving.refusals import Heard, refusal

HEALTH = "/healthz"
SWEEP_EVERY_S = 0.25
LINGER_S = 2.0  # for a client to read a refusal while it still sends
FILES_PER_CONNECTION = 3
PARKED_SHARE = 0.4  # of all connections


def no_signs(_: Collection[Any]) -> Mapping[Any, str]:
    """For a server whose views wait for nothing."""
    return {}


class Worker(ThreadWorker):  # type: ignore[misc]
    """The loop reads requests and writes answers; threads do what lies between.

    Ordinary requests, uploads and /healthz have threads of their own, and one route holds at most three
    quarters of the threads: its other requests wait without one, so that a crowd at a costly route leaves
    room for everybody else. Of too many connections, in all or of one address, the one is closed that has
    waited for its client for longest. Requests that wait for a change are parked meanwhile (parking.py).
    """

    signs_of: Signs = staticmethod(no_signs)  # the portal's options read the portal's rows
    route_of: Callable[[str], str] = str  # of a path; the portal's options give its routes

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        if cfg.is_ssl:
            raise ConfigError("a proxy ends TLS; this worker speaks plain HTTP")
        super().check_config(cfg, log)

    def init_process(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= soft < (wanted := FILES_PER_CONNECTION * self.worker_connections):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))
        self.of_one_address = max(1, self.worker_connections // 2)
        self.waiting: dict[HttpConnection, None] = {}  # for their clients, longest first
        self.connections: Counter[str] = Counter()
        self.next_sweep = 0.0
        self.of_one_route = max(1, self.cfg.threads * 3 // 4)
        self.held: Counter[str] = Counter()  # ordinary threads, by route
        self.queued: defaultdict[str, deque[tuple[HttpConnection, float]]] = defaultdict(deque)
        self.parked: set[HttpConnection] = set()
        self.lot = ParkingLot(
            most=int(self.worker_connections * PARKED_SHARE),
            signs_of=lambda subjects: self.signs_of(subjects),
            wake=lambda conn: self.method_queue.defer(self.wake, conn),
        )
        self.uploads = ThreadPoolExecutor(self.cfg.threads, "upload")
        self.health = ThreadPoolExecutor(1, "health")
        super().init_process()

    # From here on, the loop's thread.

    def accept(self, listener: Any) -> None:
        try:
            sock, client = listener.accept()
        except OSError:
            return  # it has left, or another process was faster
        sock.setblocking(False)
        conn = HttpConnection(self.cfg, sock, client, listener.getsockname())
        self.nr_conns += 1
        self.connections[conn.address] += 1
        self.make_room(conn.address)
        self.wait(conn, selectors.EVENT_READ, self.read)

    def make_room(self, address: str) -> None:
        """Close the connection that has waited longest if there are too many.

        The connection is one of this address if the address has too many, otherwise any.
        """
        crowded = self.connections[address] > self.of_one_address
        if crowded or self.nr_conns >= self.worker_connections:
            first = (conn for conn in self.waiting if not crowded or conn.address == address)
            if conn := next(first, None):
                self.drop(conn)

    def wait(self, conn: HttpConnection, event: int, then: Callable[[HttpConnection], None]) -> None:
        self.waiting[conn] = None
        self.poller.register(conn, event, partial(self.woken, then))

    def rest(self, conn: HttpConnection) -> None:
        """The connection is somebody else's for a while."""
        if conn in self.waiting:
            del self.waiting[conn]
            self.poller.unregister(conn)

    def woken(self, then: Callable[[HttpConnection], None], conn: HttpConnection) -> None:
        if conn in self.waiting:  # and not closed by an earlier event of the same round
            self.attempt(then, conn)

    def attempt(self, then: Callable[[HttpConnection], None], conn: HttpConnection) -> None:
        """The loop goes on, whatever one client does."""
        try:
            then(conn)
        except BlockingIOError:
            return
        except OSError:
            self.drop(conn)
        except Exception:
            self.log.exception("a connection went wrong")
            self.drop(conn)

    def drop(self, conn: HttpConnection) -> None:
        self.rest(conn)
        if conn in self.parked:
            self.unpark(conn)
        self.nr_conns -= 1
        self.connections[conn.address] -= 1
        if not self.connections[conn.address]:
            del self.connections[conn.address]
        conn.close()

    def read(self, conn: HttpConnection) -> None:
        if conn.receive():
            self.serve_if_ready(conn)
        else:
            self.drop(conn)

    def serve_if_ready(self, conn: HttpConnection) -> None:
        try:
            if not conn.ready():
                return
        except LengthMissing:
            self.refuse(conn, 411)
        except OSError:
            raise
        except Exception as wrong:  # noqa: BLE001 -- gunicorn has a status for each
            heard = Heard()
            self.handle_error(None, heard, conn.client, wrong)
            self.refuse(
                conn, heard.status, str(wrong) if heard.status < HTTPStatus.INTERNAL_SERVER_ERROR else ""
            )
        else:
            self.rest(conn)
            self.enqueue_req(conn)

    def enqueue_req(self, conn: HttpConnection) -> None:
        now = time.monotonic()
        if conn.source.streaming:
            self.hand_over(self.uploads, conn, now)
        elif conn.request.path == HEALTH:
            self.hand_over(self.health, conn, now)
        else:
            route = self.route_of(conn.request.path)
            self.queued[route].append((conn, now))
            self.begin_next(route)

    def begin_next(self, route: str) -> None:
        """Give the route's next request a thread, unless the route holds its share."""
        if self.held[route] < self.of_one_route and self.queued[route]:
            self.held[route] += 1
            conn, ready_at = self.queued[route].popleft()
            self.hand_over(self.tpool, conn, ready_at, route)
        if not self.queued[route]:
            del self.queued[route]

    def give_back(self, route: str) -> None:
        self.held[route] -= 1
        if not self.held[route]:
            del self.held[route]
        self.begin_next(route)

    def hand_over(
        self, pool: ThreadPoolExecutor, conn: HttpConnection, ready_at: float, route: str | None = None
    ) -> None:
        def served(done: Future[bool]) -> None:
            if route is not None:
                self.method_queue.defer(self.give_back, route)
            self.method_queue.defer(self.finish_request, conn, done)

        pool.submit(self.handle, conn, ready_at).add_done_callback(served)

    def finish_request(self, conn: HttpConnection, served: Future[bool]) -> None:
        if conn.turn is not None and conn.turn.wait is not None:
            self.park(conn, conn.turn.wait)
            return
        conn.turn = None
        conn.keep = not served.cancelled() and served.exception() is None and served.result()
        conn.source.pace = TransferPace(time.monotonic())
        if conn.sock:
            self.wait(conn, selectors.EVENT_WRITE, self.write)
        else:
            self.attempt(self.answered, conn)

    def park(self, conn: HttpConnection, wait: Wait) -> None:
        conn.sock.close()  # what was answered is no answer
        self.parked.add(conn)
        self.lot.watch(conn, wait)
        self.poller.register(conn, selectors.EVENT_READ, partial(self.attempt, self.look_who_left))

    def look_who_left(self, conn: HttpConnection) -> None:
        if not conn.socket.recv(1, socket.MSG_PEEK):
            self.drop(conn)
        else:  # more is there already, for afterwards
            self.poller.unregister(conn)

    def unpark(self, conn: HttpConnection) -> None:
        self.parked.discard(conn)
        if conn.turn is not None and conn.turn.wait is not None:
            self.lot.leave(conn, conn.turn.wait.asker)
            conn.turn.wait = None
        if conn.fileno() in self.poller.get_map():
            self.poller.unregister(conn)

    def wake(self, conn: HttpConnection) -> None:
        """Serve a parked request again."""
        if conn in self.parked:  # and not since, or for another reason
            self.unpark(conn)
            self.enqueue_req(conn)

    def write(self, conn: HttpConnection) -> None:
        if conn.sock.flush():
            self.rest(conn)
            self.answered(conn)

    def answered(self, conn: HttpConnection) -> None:
        if not conn.keep:
            self.end(conn)
            return
        patience_s = self.cfg.keepalive if self.alive else STOP_KEEPALIVE_LINGER
        more = conn.next_request(time.monotonic() + patience_s)
        self.wait(conn, selectors.EVENT_READ, self.read)
        if more:
            self.serve_if_ready(conn)

    def refuse(self, conn: HttpConnection, status: int, found: str = "") -> None:
        conn.sock.sendall(refusal(status, conn.target, found))
        self.end(conn)

    def end(self, conn: HttpConnection) -> None:
        """Send the rest of the answer and close.

        A client that still sends gets time to read it: otherwise it would see a reset.
        """
        self.rest(conn)
        conn.sock.flush()
        if conn.request is not None and not conn.missing():
            self.drop(conn)
            return
        conn.socket.shutdown(socket.SHUT_WR)
        conn.idle_until = time.monotonic() + LINGER_S
        self.wait(conn, selectors.EVENT_READ, self.ignore)

    def ignore(self, conn: HttpConnection) -> None:
        if not conn.socket.recv(65536):
            self.drop(conn)

    def murder_keepalived(self, force: bool = False) -> None:
        """gunicorn's hook, after each round of the loop: close slow connections."""
        now = time.monotonic()
        if now < self.next_sweep and not force:
            return
        self.next_sweep = now + SWEEP_EVERY_S
        self.lot.closed = not self.alive
        for conn in list(self.parked):
            wait = conn.turn.wait if conn.turn else None
            if wait is None or wait.until <= now or not self.alive:
                self.wake(conn)
        for conn in [conn for conn in self.waiting if force or conn.due() < now]:
            self.drop(conn)

    def _cap_keepalive(self, deadline: float) -> None:
        """gunicorn's hook at the beginning of the end: nobody may stay idle for longer."""
        for conn in self.waiting:
            if conn.idle_until is not None:
                conn.idle_until = min(conn.idle_until, deadline)

    def run(self) -> None:
        super().run()
        for pool in (self.uploads, self.health):
            pool.shutdown(wait=False, cancel_futures=True)

    # And here, one of the threads.

    def handle(self, conn: HttpConnection, ready_at: float) -> bool:
        # Uploads queue for each other; they are long, and as welcome later.
        waited_s.set(0.0 if conn.source.streaming else time.monotonic() - ready_at)
        slow_s.set(0.0)
        conn.turn = conn.turn or Turn(self.lot)
        turn.set(conn.turn)
        keep = bool(super().handle(conn))
        if conn.turn.wait is not None:
            return keep
        try:
            conn.sock.flush()
        except OSError:
            return False
        return keep
