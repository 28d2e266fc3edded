"""How well the end of a training is predicted after its first logged lines.

    python -m benchmarks.knowledge.log_ends [LOG.txt ...]

Of each log the lines up to its 20th logged step are read, or half of them where there are fewer than 40, and
the time to the end is compared with what it took, or with the last step that could be seen. The logs of
others are not kept here: logs.csv has their addresses, forms, and the moments of their steps, from which the
lines are written again as they stood, but for figures that say nothing of time. Whole logs may be named
instead.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from knowledge.reading.failures.troubled_lines import LogLine
from knowledge.reading.logs.figures import LogFigures, read_figures

LOGS = Path(__file__).with_name("logs.csv")
LOGGED, NEAR = 20, 0.10
BEGUN = datetime(2025, 6, 2, 1, 36, tzinfo=UTC)


def clock(seconds: float) -> str:
    """As bars and LLaMA-Factory write it."""
    whole = int(seconds)
    days, rest = divmod(whole, 86_400)
    return (f"{days} days, " if days else "") + f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"


def in_units(seconds: float) -> str:
    """As ms-swift writes it."""
    whole = int(seconds)
    parts = (whole // 3600, "h"), (whole // 60 % 60, "m"), (whole % 60, "s")
    first = next((at for at, (number, _) in enumerate(parts) if number), 2)
    return " ".join(f"{number}{unit}" for number, unit in parts[first:])


def line_of(form: str, mark: str, step: str, total: str, seconds: float) -> str:
    """One line of the log. `mark`: `e` of an evaluation, `s` of a line that counts other steps."""
    loss = "eval_loss" if mark == "e" else "loss"
    bar = f"{step}/{total} [{clock(seconds).removeprefix('0:')}<1:00:00,  1.65s/it]"
    swift = f"'global_step/max_steps': '{step}/{total}', 'elapsed_time': '{in_units(seconds)}'"
    at = BEGUN + timedelta(seconds=seconds)
    if mark == "s":
        return f"{at:%Y-%m-%d %H:%M:%S},123 - INFO - Step {step}. Internal Test Loss: 0.8700"
    return {
        "llama-factory": f'{{"current_steps": {step}, "total_steps": {total}, "{loss}": 1.5, "epoch": 0.1,'
        f' "percentage": 1.2, "elapsed_time": "{clock(seconds)}", "remaining_time": "1:00:00"}}',
        "llama-factory of 2023": f'{{"current_steps": {step}, "total_steps": {total}, "loss": 1.5,'
        f' "eval_loss": null, "epoch": 0.1, "elapsed_time": "{clock(seconds)}"}}',
        "swift": f"{{'{loss}': 1.5, 'epoch': 0.1, {swift}, 'memory(GiB)': 16.5}}",
        "swift behind a bar": f"Train:  10%|# | {bar}{{'loss': '1.5', 'epoch': '0.1', {swift}}}",
        "bar": f"  1%|# | {bar}",
        "mmengine": f"{at:%m/%d %H:%M:%S} - mmengine - INFO - Iter(train) [{step:>3}/{total}]  lr: 1.9e-04"
        "  eta: 0:31:24  time: 2.7031  data_time: 0.0070  memory: 13969  loss: 2.5795",
        "epochs with their seconds": f"Epoch {step:>2}/{total} [{seconds:.1f}s] - Train: 43.64 | Val: 25.40",
        "epochs with moments": f"{at:%Y-%m-%d %H:%M:%S},123 - INFO - Epoch {step}/{total}, Loss: 1.9911",
        "epochs that finish": f"{at:%Y-%m-%d %H:%M:%S},123 - INFO - Epoch {step}/{total} finished."
        " Train Loss: 0.7722, Train Accuracy: 0.6929",
    }[form]


@dataclass(frozen=True, slots=True)
class RealLog:
    address: str
    lines: Sequence[str]


def kept_logs() -> Iterator[RealLog]:
    with LOGS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            lines = []
            for moment in row["moments"].split():
                step, _, seconds = moment.partition("@")
                mark = step[0] if step[0].isalpha() else ""
                lines.append(line_of(row["form"], mark, step.lstrip("es"), row["total"], float(seconds)))
            yield RealLog(row["address"], lines)


def read(lines: Sequence[str]) -> LogFigures:
    return read_figures(LogLine(number, text) for number, text in enumerate(lines, start=1))


def predicted_and_real(log: RealLog) -> tuple[int, float | None, float] | None:
    """The logged steps that were read, the seconds predicted and those that it took; None without moments."""
    whole = [one for one in read(log.lines).points if one.step is not None]
    steps = sorted({one.step for one in whole if one.step is not None})
    if len(steps) < 3:
        return None
    logged = LOGGED if len(steps) > LOGGED else len(steps) // 2
    upto = max(one.line.number for one in whole if one.step == steps[logged - 1])
    begun, end = next(one for one in whole if one.line.number == upto), whole[-1]
    if begun.seconds is not None and end.seconds is not None:
        took = end.seconds - begun.seconds
    else:
        took = sum(1 / one.pace for one in whole if one.pace and one.line.number > upto)
    found = read(log.lines[:upto])
    predicted = found.seconds_to(steps[-1]) if found.total else None
    return logged, predicted, took


def main(files: Sequence[str]) -> None:
    logs = [RealLog(name, Path(name).read_text(errors="replace").splitlines()) for name in files]
    near, judged = {True: 0, False: 0}, {True: 0, False: 0}
    for log in logs or kept_logs():
        found = predicted_and_real(log)
        if found is None:
            print(f"{'no moments':>40}  {log.address}")
            continue
        logged, predicted, took = found
        error = None if predicted is None else (predicted - took) / took
        judged[logged >= LOGGED] += 1
        near[logged >= LOGGED] += error is not None and abs(error) <= NEAR
        shown = "no end" if error is None else f"{error:+.1%}"
        left = f"{logged:>3} logged  left {predicted or 0:>9,.0f} s  took {took:>9,.0f} s"
        print(f"{left}  {shown:>8}  {log.address}")
    print(f"within {NEAR:.0%}: {near[True]} of {judged[True]} after {LOGGED} logged steps,")
    print(f"            {near[False]} of {judged[False]} after fewer")


if __name__ == "__main__":
    main(sys.argv[1:])
