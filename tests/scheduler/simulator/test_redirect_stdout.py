"""A solver's chatter does not mix with results."""

from __future__ import annotations

import os

import pytest

from scheduler.simulator.redirect_stdout import stdout_for_results


def test_what_a_library_prints_goes_to_stderr_and_results_to_stdout(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with stdout_for_results():
        os.write(1, b"tmpSolver.run();\n")
    os.write(1, b"{}\n")
    assert capfd.readouterr() == ("{}\n", "tmpSolver.run();\n")


def test_stdout_is_back_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), stdout_for_results():
        _ = 1 / 0
    os.write(1, b"{}\n")
    assert capfd.readouterr().out == "{}\n"
