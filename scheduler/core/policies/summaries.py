"""What each policy does, in one sentence for people who choose one."""

from __future__ import annotations

SUMMARIES: dict[str, str] = {
    "fifo": "First come, first served; nobody behind a waiting job takes the GPU models that it waits for.",
    "fifo-backfill": "First come, first served, but whoever fits passes; a large job may wait very long.",
    "fifo-strict": "First come, first served, and nobody passes; jobs take the fewest nodes.",
    "fifo-distributed": "First come, first served, and nobody passes; jobs take any free GPUs.",
    "easy": "First come, first served; later jobs fill gaps where they are predicted to delay nobody.",
    "sjf": "The job with the shortest predicted duration first; jobs without a prediction last.",
    "srtf": "The job with the least predicted time left first; it stops jobs that have clearly more left.",
    "lucid": "The job with the least predicted duration times GPUs first, so small jobs leave soon.",
    "las": "The job that received least GPU time first, without predictions; it stops others.",
    "tiresias": "Queues by GPU time received, first come first served within each; it stops others.",
    "tiresias-adaptdl": "Tiresias as AdaptDL simulates it: one limit, any free GPUs; for comparison.",
    "gittins": "The job most likely to end soon for the GPU time it takes, judged by past jobs.",
    "sia": "Every minute the GPUs, of all kinds, that serve all jobs best together; it resizes jobs.",
    "pollux": "A genetic search for the division with the best speed-up for all; for comparison.",
    "gavel": "Shares of time on each GPU model that make the worst-off job as well off as possible.",
    "uwfq": "Fair between people by GPU time, in segments; it stops jobs between them, at a checkpoint.",
    "uwfq-whole": "Fair between people: jobs in the order in which an evenly shared cluster would end them.",
    "fair": "The person who received least GPU time lately goes first; old use fades.",
    "edd": "The job with the earliest deadline first; jobs without one after them.",
    "mdd": "Deadlines, but one that cannot be kept any more counts as the earliest end still possible.",
    "mddc": "Deadlines by mdd or by its corrected form, whichever is predicted to be less late in all.",
    "topology": "Preempts for GPUs that are close to each other, where jobs ask for that.",
}
