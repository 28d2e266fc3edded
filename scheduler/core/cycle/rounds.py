"""When a policy decides that does so in rounds."""

from __future__ import annotations


def next_round(last: float | None, round_s: float | None, now: float) -> float:
    """Return when the policy decides next, which is now or later.

    A round lasts `round_s` from its decision on, whichever jobs come or end; once it is over, the next
    one begins with the first event. last: when the policy decided last; None: it did not yet, or another one
    did since. A time ahead of now does not count: the clock was set back.
    """
    if not round_s or last is None or last > now:
        return now
    return max(now, last + round_s)
