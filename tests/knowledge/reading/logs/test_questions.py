"""Figures of logs in the forms of common trainers, and answers to questions."""

from __future__ import annotations

import pytest

from knowledge.reading.failures.troubled_lines import LogLine
from knowledge.reading.logs.figures import LogFigures, read_figures
from knowledge.reading.logs.questions import QUESTIONS, LogAnswer, LogFacts, ask
from tests.harness import hostile


def figures(log: str) -> LogFigures:
    return read_figures(LogLine(number, text) for number, text in enumerate(log.splitlines(), start=1))


def asked(question: str, log: str, **facts: object) -> LogAnswer:
    return ask(question, figures(log), LogFacts(**facts))  # type: ignore[arg-type]


def test_an_unknown_end_says_what_the_log_lacks() -> None:
    text = asked("When does it end?", "step 2/100 loss=2.5\n").text
    assert text == "The log does not tell its speed, so its end is not known."
    text = asked("When does it end?", "step 2 loss=2.5\n").text
    assert text == "The log does not tell its speed and its number of steps, so its end is not known."


BARS = " 10%|# | 50/500 [01:40<15:00]\n 12%|# | 60/500 [02:04<14:40]\n 14%|# | 70/500 [02:24<14:20]\n"


def test_the_rate_of_a_bar_is_the_median_of_its_differences() -> None:
    found = figures(BARS)
    assert found.steps_per_s == pytest.approx(0.4583, abs=1e-4)
    assert found.remaining_s == pytest.approx(938.2, abs=0.1)


def paced(pauses: dict[int, int], until: int = 60) -> str:
    """Five seconds a step, a line each five steps, and pauses before some lines."""
    spent, log = 0, ""
    for step in range(5, until + 1, 5):
        spent += 25 + pauses.get(step, 0)
        log += f" 1%|# | {step}/100 [{spent // 60:02}:{spent % 60:02}<09:00]\n"
    return log


def test_pauses_that_recur_are_in_what_remains() -> None:
    assert figures(paced({})).remaining_s == pytest.approx(200)
    every_20 = {25: 90, 45: 90}
    assert figures(paced(every_20)).remaining_s == pytest.approx(200 + 2 * 90)
    assert figures(paced({25: 90})).remaining_s == pytest.approx(200)  # one may be a hiccup
    assert figures(paced({10: 90, 15: 90, 45: 90})).remaining_s == pytest.approx(200)  # not regular


EVALUATED = "{'eval_loss': 1.2, 'eval_runtime': 90.1, 'epoch': 0.4}\n"


def test_the_first_evaluation_comes_again_after_as_many_steps() -> None:
    lines = paced({25: 90}, until=30).splitlines(keepends=True)
    log = "".join([*lines[:4], EVALUATED, *lines[4:]])
    assert figures(log).remaining_s == pytest.approx(350 + 4 * 90)  # at 40, 60, 80 and 100
    late = "".join([EVALUATED, *lines[:4], EVALUATED, *lines[4:]])  # before any step: none of these
    assert figures(late).remaining_s == pytest.approx(350 + 4 * 90)
    unlike = "".join([*lines[:2], EVALUATED, *lines[2:]])  # elsewhere, and without a pause
    assert figures(unlike).remaining_s == pytest.approx(350)
    names = log.replace("1.2, 'eval_runtime': 90.1", "None")
    assert figures(names).remaining_s == pytest.approx(350)


FORMS = {
    "this trainer": ("step 12/50  loss 2.1000  900 tokens/s", 12, 50, 2.1),
    "hugging face": (
        "{'loss': 1.23, 'grad_norm': 0.4, 'learning_rate': 2e-05, 'epoch': 0.1}",
        None,
        None,
        1.23,
    ),
    "lightning": ("Epoch 0:  29%|##9 | 1034/3597 [51:02<2:06:30, 2.96s/it, loss=0.279]", 1034, 3597, 0.279),
    "deepspeed": ("steps: 10 loss: 0.6931 iter time (s): 0.512 samples/sec: 31.2", 10, None, 0.6931),
    "plain": ("2026-01-02 03:04:05 step 10/100 loss=2.5e-1", 10, 100, 0.25),
    "nanogpt": ("iter 40: loss 3.2511, time 120.41ms", 40, None, 3.2511),
    "megatron": ("iteration 7/ 100 | elapsed | lm loss: 9.1E+00 |", 7, 100, 9.1),
    "megatron, as wide as it prints": (
        " iteration       70/    5000 | consumed samples:    640 | lm loss: 2.4E+00 |",
        70,
        5000,
        2.4,
    ),
    "llama-factory": (
        '{"current_steps": 20, "total_steps": 900, "loss": 1.5, "elapsed_time": "0:01:03"}',
        20,
        900,
        1.5,
    ),
    "newer hugging face": ("{'loss': '2.602', 'grad_norm': '0.2167', 'epoch': '0.0163'}", None, None, 2.602),
    "bars of a terminal in one line": (
        "  1%|   | 1/9 [00:02<00:16]  2%|   | 2/9 [00:04<00:14]  3%|   | 3/9 [00:06<00:12, loss=3]",
        3,
        9,
        3.0,
    ),
    "hugging face in a notebook": ("[ 60/500 05:12 < 38:20, 0.19 it/s, Epoch 0.12/1]", 60, 500, None),
    "brackets": ("08/07/2026 02:18:56 - INFO - | [ 1/ 3][ 100/ 1000] | train_loss 5.7e-01", 100, 1000, 0.57),
}


@pytest.mark.parametrize("form", FORMS)
def test_lines_of_common_trainers(form: str) -> None:
    text, *expected = FORMS[form]
    (point,) = figures(text).points
    assert [point.step, point.total, point.loss] == expected


def test_validation_is_not_the_training_loss() -> None:
    assert figures("step 4  validation loss 2.5\n{'eval_loss': 3.1}\n").losses == []


def test_bars_of_other_work_are_left_out() -> None:
    log = "Map: 100%|#| 9000/9000 [00:02<00:00]\n" + BARS + "100%|#| 20/20 [00:03<00:00]\n"
    assert asked("How far is it?", log).text == "It came to step 70 of 500, 14 %."


def test_moments_at_the_lines_give_the_rate() -> None:
    log = "".join(f"2026-01-02 03:04:{5 * n:02} step {n}/100 loss=2\n" for n in range(10))
    assert figures(log).steps_per_s == pytest.approx(0.2)
    assert asked("when will it be done?", log).text.startswith("At the speed of its last steps")
    assert asked("how quick?", log).text == "It makes 5 s a step."


def rate_of(log: str) -> float | None:
    return figures(log).steps_per_s


def test_whole_seconds_are_no_measure_of_short_steps() -> None:
    seconds = [round(1.6 * n) for n in range(40)]
    log = "".join(f" 1%|#| {n}/900 [00:{s:02}<24:00]\n" for n, s in enumerate(seconds))
    assert rate_of(log) == pytest.approx(1 / 1.6, rel=0.05)


@pytest.mark.parametrize(
    ("line", "rate"),
    [
        ("iter {n}: loss 3.2511, time 250.00ms, mfu 0.01%", 4.0),
        (" iteration  {n}/ 500 | elapsed time per iteration (ms): 500.0 | lm loss: 2.1E+00 |", 2.0),
        ("Iter {n}: Train loss 0.7, Learning Rate 1.000e-05, It/sec 1.500, Tokens/sec 231.4", 1.5),
    ],
)
def test_a_line_without_a_moment_may_tell_its_own_rate(line: str, rate: float) -> None:
    assert rate_of("\n".join(line.format(n=n) for n in range(9))) == pytest.approx(rate)


def test_moments_in_other_forms() -> None:
    for form in ("{m}/02/2026 03:04:{s:02} step", "[INFO|2026-{m}-02 03:04:{s:02}] step"):
        log = "".join(form.format(m="01", s=10 * n) + f" {n}/100 loss=2\n" for n in range(5))
        assert rate_of(log) == pytest.approx(0.1)
    short = "".join(
        f"01/29 03:04:{10 * n:02} - mmengine - INFO - Iter(train) [ {n}/720] loss: 2\n" for n in range(5)
    )
    assert rate_of(short) == rate_of(short.replace("01/29", "2024/01/29")) == pytest.approx(0.1)
    assert figures("step 10/20 12:00:00 loss 2\n").points[0].seconds is None
    days = '{"current_steps": 9, "total_steps": 99, "elapsed_time": "1 day, 0:00:02"}\n'
    assert figures(days).points[0].seconds == 86_402


def test_a_total_may_be_announced() -> None:
    log = "***** Running training *****\n  Total optimization steps = 60\niter 20: loss 2\n"
    assert asked("how far is it?", log).text == "It came to step 20 of 60, 33 %."


def falling(*losses: float) -> str:
    return "".join(f"step {n}/99  loss {loss:.4f}  90 tokens/s\n" for n, loss in enumerate(losses))


@pytest.mark.parametrize(
    ("losses", "begins"),
    [
        ([4 - n / 20 for n in range(40)], "Yes: the loss fell from 3.7"),
        ([2.0] * 40, "No: the loss stays about the same"),
        ([1 + n / 20 for n in range(40)], "No: the loss rises"),
        ([3.0] * 10 + [1.0] * 30, "Yes: the loss fell"),
        ([2.0, 1.0], "Too few lines"),
        ([2.0, float("nan")], "No: the loss became infinite"),
        ([], "No line of the log has a loss."),
    ],
)
def test_whether_the_loss_falls(losses: list[float], begins: str) -> None:
    answer = asked("Is the loss falling?", falling(*losses))
    assert answer.text.startswith(begins)
    assert bool(answer.lines) == bool(losses)


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        *zip(QUESTIONS, ("failure", "progress", "speed", "loss", "end", "warnings"), strict=True),
        ("what went wrong here", "failure"),
        ("how many steps are done", "end"),
        ("throughput?", "speed"),
        ("why is it slow", "speed"),
        ("does it converge", "loss"),
        ("the weather", ""),
        ("", ""),
    ],
)
def test_questions_are_understood_by_their_words(question: str, topic: str) -> None:
    assert asked(question, BARS).topic == topic


def steady(seconds: list[int]) -> str:
    return "".join(
        f"2026-01-01 {s // 3600:02}:{s // 60 % 60:02}:{s % 60:02} step {n}/90\n"
        for n, s in enumerate(seconds)
    )


def test_a_silence_of_ten_times_the_usual_one_is_told() -> None:
    lines = [*range(0, 200, 20), *range(1000, 1100, 20)]
    answer = asked("How far is it?", steady(lines))
    assert answer.text == "It came to step 14 of 90, 16 %. It stood still for 14 min after this line."
    assert [line.number for line in answer.lines] == [15, 10]
    even = steady([*range(0, 400, 20)])
    assert "still" not in asked("How far is it?", even).text
    assert "still" not in asked("How far is it?", steady([0, 20, 1000])).text
    assert "silent for 5 min, and usually for 20 s" in asked("How far is it?", even, silent_s=300.0).text
    assert "silent" not in asked("How far is it?", even, silent_s=190.0).text


def test_of_a_node_that_is_not_heard_of_nothing_is_told_as_if_it_were_so_now() -> None:
    even = steady([*range(0, 400, 20)])
    assert "should end in" in asked("when does it end", even).text
    for known in ({}, {"left_s": 60.0}):
        told = asked("when does it end", even, unheard_s=600.0, **known).text
        assert told == "Nothing was heard of its node for 10 min, so its end is not known."
    assert asked("how fast is it", even).text.startswith("It makes ")
    told = asked("how fast is it", even, unheard_s=600.0).text
    assert told.startswith("Nothing was heard of its node for 10 min, before that it made ")


def test_what_the_portal_knows_goes_before_the_log() -> None:
    assert "2 h" in asked("when does it end", BARS, left_s=7200.0).text
    assert asked("when does it end", BARS, state="failed", ended=True).text == "It has ended: it has failed."
    assert asked("why did it fail", BARS, state="running").text == "It has not failed: it is running."
    assert asked("why", BARS, state="succeeded").text == "It has not failed: it has succeeded."


def test_warnings_are_counted_and_the_first_ones_shown() -> None:
    answer = asked("any warnings?", "UserWarning: one\n" * 9)
    assert answer.text == "9 lines are warnings, the first 5 of them below."
    assert [line.number for line in answer.lines] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_empty_log_has_no_answers_but_says_so(question: str) -> None:
    assert asked(question, "").text


HOSTILE = (
    "1/1 [", "loss ", "step 9", "0" * 50, "\x00", "9/9 [1:00<", "train_", "epoch 1/2 [9", "time: ", "took 9",
    "'elapsed_time': '1d ", "eval_loss: ", "01/01 ", "2024/", "{'loss': 1, ", "train_speed(",
)  # fmt: skip


def test_steps_that_leap_cost_no_more() -> None:
    far = "step 1/999999999 loss 2\n", "step 2/999999999 loss 2\n", "step 999999998/999999999 loss 2\n"
    log = "".join(f"2026-01-02 0{hour}:04:05 {line}{EVALUATED}" for hour, line in enumerate(far))
    with hostile.bounded(seconds=2):
        assert figures(log).remaining_s is not None


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_logs_cost_little(piece: str) -> None:
    with hostile.bounded(seconds=2):
        found = figures(f"{piece * 3_000}\n" * 200)
        for question in QUESTIONS:
            ask(question, found, LogFacts())


def test_hostile_questions_cost_little() -> None:
    with hostile.bounded(seconds=2):
        figures("loss 1/2 " * 120_000)
        asked("why " * 1_000_000, BARS)
