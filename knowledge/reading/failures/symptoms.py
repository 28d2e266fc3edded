"""Expressions that tell an end which follows from another cause.

They are asked where no line tells a cause by itself.
"""

from __future__ import annotations

from knowledge.reading.failures.rules import compiled

SYMPTOMS = compiled(
    (
        ("silent", r"no sign of life"),
        (
            "peer-lost",
            r"store based barrier|no socket interface|Address already in use|EADDRINUSE|HCCL"
            r"|error code is \d+, HcclComm",
        ),
        (
            "peer-lost",
            r"Timeout at NCCL work|collective operation timeout|[Ww]atchdog (?:caught|got stuck)"
            r"|NCCL (?:communicator|error|WARN)",
        ),
        ("peer-lost", r"unhandled (?:system|cuda) error|remote process exited|Connection closed by peer"),
        (
            "peer-lost",
            r"Connection reset by peer|gloo/transport|DistBackendError|DistNetworkError|DistStoreError",
        ),
        ("peer-lost", r"other (?:nodes|training processes)|RendezvousTimeoutError|RendezvousConnectionError"),
        (
            "peer-lost",
            r"socket timed? ?out|(?:client|server) socket|failed to listen on|Broken pipe|monitoredBarrier"
            r"|Timed out after \d+ms",
        ),
        ("crash", r"Segmentation fault|SIGSEGV|Bus error|SIGBUS|SIGABRT|core dumped|Fatal Python error"),
        ("crash", r"terminate called|free\(\): invalid|double free|corrupted size"),
        ("crash", r"an illegal memory access|DataLoader worker .{0,200}exited unexpectedly"),
        ("crash", r"stack smashing|buffer overflow detected|malloc\.c:\d"),
        ("killed", r"^Killed\b|SIGKILL|KeyboardInterrupt"),
        (
            "crash",
            r"Illegal instruction|Floating point exception|\bAborted\b|terminating (?:due to|with) uncaught",
        ),
        ("crash", r"^the training exited with (?:\d{1,2}|1[01]\d|12[0-7]) and no result"),
        ("crash", r"ActorDiedError|WorkerCrashedError|A worker died or was killed"),
        ("killed", r": line \d+: +\d+ (?:Killed|Terminated)\b|^Terminated$"),
        ("killed", r"CANCELLED AT|was ended by|ended unseen|agent was not running|machine was restarted"),
        (
            "node-lost",
            r"\blease\b|did not report|node .{0,60}(?:lost|silent|gone)|declared lost|Node failure",
        ),
    )
)
