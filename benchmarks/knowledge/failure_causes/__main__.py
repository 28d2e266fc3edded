"""How often the cause of a failure is right on logs with labels.

    python -m benchmarks.knowledge.failure_causes LOGS.txt ...

A file holds many logs. Each begins with `=== CAUSE | ADDRESS`; its lines follow. The logs of others are not
kept here: threads.csv has the addresses of those that are threads, with their cause and batch.
Beside the rules stands a plain baseline: the first cause of which one of a few usual words stands anywhere.
Counted are right causes and right classes of causes: the user's, a resource's, the system's, or unknown.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from knowledge.reading.failures.causes import CAUSES
from knowledge.reading.failures.explaining import UNKNOWN, FailureFacts, explain_failure
from knowledge.reading.failures.troubled_lines import LogLine

PLAIN = {
    "gpu-memory": "out of memory",
    "host-memory": "oom-kill|oom_kill|MemoryError|Killed",
    "disk-full": "No space left",
    "gpu-fault": "ECC error|Xid",
    "gpu-driver": "no CUDA|NVIDIA driver|CUDA Setup",
    "peer-lost": "NCCL|timeout",
    "gated-model": "gated|401",
    "hub-unreachable": "Connection|Max retries",
    "missing-model": "not a valid model|does not appear to have",
    "missing-package": "No module named|ImportError",
    "bad-data": "JSONDecodeError|ArrowInvalid|DatasetGenerationError",
    "token-range": "device-side assert|out of range",
    "loss-not-finite": r"\bnan\b",
    "checkpoint": "state_dict|size mismatch",
    "time-limit": "TIME LIMIT",
    "permission": "Permission denied",
    "bad-arguments": "unrecognized arguments|ArgumentParser",
    "assertion": "AssertionError",
    "crash": "Segmentation fault|SIGSEGV|core dumped",
    "code-error": "Error:",
}


class LabelledLog(NamedTuple):
    cause: str
    address: str
    lines: Sequence[str]


def labelled_logs(text: str) -> Iterator[LabelledLog]:
    for block in re.split(r"^=== ", text, flags=re.M)[1:]:
        head, _, log = block.partition("\n")
        cause, _, address = head.partition(" | ")
        yield LabelledLog(cause, address.strip(), log.splitlines())


def named(log: LabelledLog) -> str:
    """The cause that the rules name."""
    lines = [LogLine(number, line) for number, line in enumerate(log.lines, start=1)]
    return explain_failure(lines, FailureFacts()).cause.name


def plain(log: LabelledLog) -> str:
    """The cause that the baseline names."""
    text = "\n".join(log.lines)
    return next((cause for cause, words in PLAIN.items() if re.search(words, text, re.I)), UNKNOWN)


def right_class(logs: Sequence[LabelledLog], answers: Sequence[str]) -> int:
    """Logs of which the class is right: the user, a resource, the system or none."""
    pairs = zip(logs, answers, strict=True)
    return sum(CAUSES[log.cause].blame == CAUSES[cause].blame for log, cause in pairs)


def share(count: int, logs: Sequence[LabelledLog]) -> str:
    return f"{count} of {len(logs)} ({count / max(1, len(logs)):.1%})"


def main() -> None:
    logs = [log for path in sys.argv[1:] for log in labelled_logs(Path(path).read_text(encoding="utf-8"))]
    for name, judge in (("rules", named), ("baseline", plain)):
        answers = [judge(log) for log in logs]
        right = Counter(log.cause for log, cause in zip(logs, answers, strict=True) if log.cause == cause)
        labelled, answered = Counter(log.cause for log in logs), Counter(answers)
        print(f"{name}: {share(right.total(), logs)} right")
        print(f"  the class: {share(right_class(logs, answers), logs)}")
        for cause, count in sorted(labelled.items(), key=lambda one: -one[1]):
            precision = f"{right[cause]} of {answered[cause]}" if answered[cause] else "-"
            print(f"  {cause:18} found {right[cause]} of {count}, right when named {precision}")


if __name__ == "__main__":
    main()
