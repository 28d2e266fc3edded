from scheduler.models.arrays import JobArray
from scheduler.models.calibrations import Calibration
from scheduler.models.decision_records import Decision, DecisionJob, OptionSet
from scheduler.models.decisions import Epoch, IdempotencyKey, PolicyChoice, WebBeat
from scheduler.models.dependencies import JobDependency
from scheduler.models.files import DatasetFile, Upload, UploadHold, UploadPart
from scheduler.models.jobs import Allocation, Attempt, Claim, Job
from scheduler.models.markets.deciding import DeciderTrial, DeciderWeight, MarketDecision, MarketPlan
from scheduler.models.markets.market import Market, MarketForecast, MarketOrder, MarketSample, SampleSource
from scheduler.models.nodes import Gpu, JoinToken, Node, NodePrice, NodeSpeedTest
from scheduler.models.outputs import Artifact, Checkpoint, LogPiece, Metric
from scheduler.models.pending import (
    ChangeSearch,
    PendingGpu,
    PendingStart,
    Preemption,
    StartForecast,
    StartQuestion,
)
from scheduler.models.plans import JobPlan
from scheduler.models.quotas import FairShare, PersonLimit, TeamQuota
from scheduler.models.reading.logs import Failure, LogQuestion
from scheduler.models.reading.provenance import JobReading, ReadSource, ReadValueCount
from scheduler.models.simulations import ShadowJob, ShadowPolicy, Simulation
from scheduler.models.windows import MaintenanceWindow

__all__ = [
    "Allocation",
    "Artifact",
    "Attempt",
    "Calibration",
    "ChangeSearch",
    "Checkpoint",
    "Claim",
    "DatasetFile",
    "DeciderTrial",
    "DeciderWeight",
    "Decision",
    "DecisionJob",
    "Epoch",
    "Failure",
    "FairShare",
    "Gpu",
    "IdempotencyKey",
    "Job",
    "JobArray",
    "JobDependency",
    "JobPlan",
    "JobReading",
    "JoinToken",
    "LogPiece",
    "LogQuestion",
    "MaintenanceWindow",
    "Market",
    "MarketDecision",
    "MarketForecast",
    "MarketOrder",
    "MarketPlan",
    "MarketSample",
    "Metric",
    "Node",
    "NodePrice",
    "NodeSpeedTest",
    "OptionSet",
    "PendingGpu",
    "PendingStart",
    "PersonLimit",
    "PolicyChoice",
    "Preemption",
    "ReadSource",
    "ReadValueCount",
    "SampleSource",
    "ShadowJob",
    "ShadowPolicy",
    "Simulation",
    "StartForecast",
    "StartQuestion",
    "TeamQuota",
    "Upload",
    "UploadHold",
    "UploadPart",
    "WebBeat",
]
