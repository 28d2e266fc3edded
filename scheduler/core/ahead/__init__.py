"""The queue played ahead: when each waiting job starts and ends.

`PlayInput` is what is known now: a state, the time, the very policy that runs, what running jobs have left,
and how jobs arrived before. `QueuePlay(given, draws, number)` is one possible future: durations are drawn,
and the policy decides again whenever something ends, arrives or becomes due, by `quotas.admission`, as the
live loop asks it. `forecast` makes starts and ends with 80 % intervals of several plays. Equal inputs give
equal plays: a job draws the same luck in the same draw whatever else changes, so that two queues which
differ in one job are compared without noise. Times are seconds since 1970, as in the state.
"""
