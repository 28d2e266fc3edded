"""Ends that a number or a signal tells, in the words of many launchers."""

from __future__ import annotations

import pytest

from knowledge.reading.failures.process_ends import cause_of_ends, tells_an_end
from tests.knowledge.reading.failures.test_explaining import explained


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("ERROR:composer.cli.launcher:Rank 2 crashed with exit code -7.", "crash"),
        ("Global rank 0 (PID 4711) exited with code -11", "crash"),
        ("failed (exitcode: -9) local_rank: 0 (pid: 27657)", "killed"),
        ("['python', 'train.py'] exits with return code = -6", "crash"),
        ("container main terminated with exit code 137", "killed"),
        ("Command exited with non-zero status 139", "crash"),
        ("srun: error: node7: task 3: Exited with exit code 134", "crash"),
        ("process 12 terminated with signal SIGSEGV", "crash"),
        ("Command '['python']' died with <Signals.SIGKILL: 9>.", "killed"),
        ("worker 3 terminated, signal: 24", "time-limit"),
        ("Process finished with exit code -1073741819 (0xC0000005)", "crash"),
        ("Process finished with exit code -1073741510", "killed"),
        ("training exited with 143", "killed"),
    ],
)
def test_a_number_tells_the_end_whoever_says_it(line: str, cause: str) -> None:
    found = cause_of_ends([line])
    assert found == (cause, 0)
    assert explained(f"{line}\n").cause.name == cause


@pytest.mark.parametrize(
    "line",
    [
        "Rank 0 crashed with exit code 1.",
        "exited with code 0",
        "the status code is 200",
        "returned 137 rows",
        "signal 64 of the noise",
        "W1226 16:52:43.2 7 torch/distributed/elastic/api.py:897] Sending process 74 closing signal SIGTERM",
        "exit code 255",
        "loss 9.0, code 11",
    ],
)
def test_other_numbers_tell_nothing(line: str) -> None:
    assert not tells_an_end(line)
    assert cause_of_ends([line]) is None


def test_an_end_that_a_launcher_brought_about_is_unknown() -> None:
    log = (
        "W1226 16:52:43.2 7 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 74 closing"
        " signal SIGTERM\nE1226 16:52:45.4 7 torch/distributed/elastic/multiprocessing/api.py:869] failed"
        " (exitcode: 1) local_rank: 7 (pid: 81) of binary: /usr/bin/python\n"
    )
    assert explained(log).cause.name == "unknown"


def test_what_a_launcher_sends_to_the_others_counts_last() -> None:
    assert cause_of_ends(["exitcode: -15", "exitcode: -11"]) == ("crash", 1)
    assert cause_of_ends(["exitcode: -15"]) == ("killed", 0)
