"""Which numbers of a log count its training: steps, steps of an epoch, or whole epochs."""

from __future__ import annotations

import pytest

from tests.knowledge.reading.logs.test_questions import asked, figures, rate_of


def test_steps_of_an_epoch_are_counted_over_all_epochs() -> None:
    log = "".join(
        f"Epoch {epoch}/3: 1%|#| {n}/40 [00:{2 * n:02}<01:00, loss=2]\n"
        for epoch in (1, 2)
        for n in range(0, 30, 5)
    )
    assert asked("how far is it?", log).text == "It came to step 65 of 120, 54 %."
    assert figures(log).remaining_s == pytest.approx(110)
    zero = "Epoch:[0/3](100/600) loss:1.8\nEpoch:[1/3](200/600) loss:1.8\n"
    assert asked("how far is it?", zero).text == "It came to step 800 of 1,800, 44 %."


SWIFT = (
    "{{'loss': '0.2992', 'grad_norm': '0.6541', 'learning_rate': '9.97e-05', 'epoch': '0.4301',"
    " 'global_step/max_steps': '{n}/100', 'elapsed_time': '{spent}', 'remaining_time': '42m 43s',"
    " 'memory(GiB)': '14.3', 'train_speed({unit})': '{speed}'}}\n"
)


def test_dictionaries_of_swift_tell_the_end() -> None:
    spent = ("1h 59m 50s", "2h 0m 0s", "2h 0m 10s", "1d 0h 0m 0s")
    log = "".join(
        SWIFT.format(n=n, spent=at, unit="iter/s", speed="0.5")
        for n, at in zip((10, 15, 20), spent, strict=False)
    )
    assert figures(log).remaining_s == pytest.approx(160)
    assert figures(log).points[-1].loss == 0.2992
    assert figures(SWIFT.format(n=1, spent=spent[3], unit="iter/s", speed="0.5")).points[0].seconds == 86_400
    assert rate_of(SWIFT.format(n=1, spent="43s", unit="s/it", speed="40.0")) == pytest.approx(1 / 40)
    rewards = "".join(f"'rewards/{n}/mean': 0.0, " for n in range(90))
    long = log.replace("'grad_norm'", f"{rewards}'grad_norm'")
    assert figures(long).remaining_s == pytest.approx(160)


@pytest.mark.parametrize(
    "line",
    [
        "Epoch {n}/60 [62.7s] train_loss=0.42 val_loss=0.51",
        "Epoch {n}/60 - loss: 0.42 - time: 62.7s",
        "[{n:03}] Epoch: [{n}/60] took 62.7 sec, loss 0.42",
    ],
)
def test_whole_epochs_are_counted_where_no_step_is(line: str) -> None:
    log = "Map: 100%|#| 9000/9000 [00:02<00:00]\n" + "\n".join(line.format(n=n) for n in range(1, 21))
    assert asked("how far is it?", log).text == "It came to epoch 20 of 60, 33 %."
    assert asked("how fast is it?", log).text == "It makes 62.7 s an epoch."
    assert figures(log).remaining_s == pytest.approx(40 * 62.7)
    assert figures(log).steps_per_s is None  # an epoch is no step


def test_seconds_beside_epochs_may_be_those_since_the_beginning() -> None:
    log = "\n".join(f"Epoch {n}/9 [{n * 20.0}s] loss 0.5" for n in range(5))
    assert figures(log).remaining_s == pytest.approx(4 * 20)
    slower = "\n".join(f"Epoch {n}/9 [{60 + n}s] loss 0.5" for n in range(1, 6))
    assert figures(slower).remaining_s == pytest.approx(4 * 63)


def test_steps_without_a_total_tell_the_speed_beside_epochs_that_have_one() -> None:
    log = "".join(
        f"2026-01-02 03:{n:02}:00 step {n * 30} loss 2.0\n"
        + (f"2026-01-02 03:{n:02}:30 Epoch {n // 5}/9 loss 2.0\n" if n % 5 == 0 else "")
        for n in range(1, 21)
    )
    assert asked("how far is it?", log).text == "It came to epoch 4 of 9, 44 %."
    assert asked("how fast is it?", log).text == "It makes 2 s a step."
    assert figures(log).remaining_s == pytest.approx(5 * 300)
    assert figures(log).steps_per_s == pytest.approx(0.5)


def test_a_sum_of_an_epoch_does_not_hide_its_steps() -> None:
    log = "".join(
        f"step {n}/60 loss 2.0\n" + (f"Epoch {n // 20}/3 [40.0s] loss 2.0\n" if n % 20 == 0 else "")
        for n in range(1, 50)
    )
    assert asked("how far is it?", log).text == "It came to step 49 of 60, 82 %."


def test_the_end_is_not_told_where_epochs_have_no_number() -> None:
    log = "".join(f"Epoch 0:  29%|#| {n}/99 [00:{2 * n:02}<02:00, loss=2]\n" for n in range(9))
    assert "not known" in asked("when does it end", log).text
