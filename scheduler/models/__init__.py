from scheduler.models.calibrations import Calibration, CalibrationState
from scheduler.models.decisions import Epoch, IdempotencyKey, PolicyChoice, WebBeat
from scheduler.models.files import DatasetFile, UploadHold
from scheduler.models.jobs import Allocation, Attempt, Claim, Job, JobEvent
from scheduler.models.nodes import Gpu, JoinToken, Node, NodeEvent
from scheduler.models.outputs import Artifact, Checkpoint, LogPiece, Metric
from scheduler.models.simulations import Simulation, SimulationState

__all__ = [
    "Allocation",
    "Artifact",
    "Attempt",
    "Calibration",
    "CalibrationState",
    "Checkpoint",
    "Claim",
    "DatasetFile",
    "Epoch",
    "Gpu",
    "IdempotencyKey",
    "Job",
    "JobEvent",
    "JoinToken",
    "LogPiece",
    "Metric",
    "Node",
    "NodeEvent",
    "PolicyChoice",
    "Simulation",
    "SimulationState",
    "UploadHold",
    "WebBeat",
]
