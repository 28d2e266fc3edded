"""One simulation in a demo portal, played to its end.

It gives the page of simulations something to show.

    python -m portal.ops.launch.demo_simulation
"""

from __future__ import annotations

import django

POLICIES = ("fifo", "easy", "las", "srtf")  # those that play in seconds


def main() -> None:
    django.setup()
    from portal.accounts.models import User
    from portal.clock import database_now
    from scheduler.models import Simulation
    from scheduler.services.simulations.play import play_next
    from scheduler.services.simulations.request import SimulationRequest, request_simulation

    if Simulation.objects.exists():
        return
    actor = User.objects.filter(is_staff=True).earliest("pk")
    question = SimulationRequest(policies=POLICIES, knowledge="performance")
    request_simulation(question=question, actor=actor, now=database_now())
    while play_next(now=database_now):
        pass


if __name__ == "__main__":
    main()
