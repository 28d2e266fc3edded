"""Errors of a simulation, in words for the person who asked for it."""

from __future__ import annotations

# SimulatorError
# ├── TraceError      the trace cannot be read, or nothing of it can run
# ├── ClusterError    the cluster's description is wrong
# └── PolicyBroke     a policy decided what cannot be done: a bug in it


class SimulatorError(Exception):
    """A simulation that cannot be done as asked."""


class TraceError(SimulatorError):
    """The trace cannot be read, or no job of it can run."""


class ClusterError(SimulatorError):
    """The cluster's description is wrong."""


class PolicyBroke(SimulatorError):
    """A policy decided what cannot be done."""
