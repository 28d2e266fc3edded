"""How drf-spectacular describes the REST interface."""

from collections.abc import Callable
from typing import Any

from trainer import __version__

# Sets of words that answers and requests have, by their names in the document.
WORDS = {
    "AddedGpuLinkEnum": "knowledge.catalogue.catalogue_entries.LINKS",
    "AfterKindEnum": "scheduler.states.DependencyKind",
    "AttemptOutcomeEnum": "scheduler.states.Outcome",
    "CalibrationStateEnum": "scheduler.states.CalibrationState",
    "CancelOutcomeEnum": "portal.api.jobs.jobs.CANCEL_OUTCOMES",
    "ChosenByEnum": "portal.api.jobs.resources.promises.CHOSEN_BY",
    "ClaimPhaseEnum": "trainer.protocol.Phase",
    "DecisionCodeEnum": "portal.api.jobs.decisions.DECISION_CODES",
    "DecisionVerbEnum": "scheduler.core.decisions.news.Verb",
    "EventTypeEnum": "portal.api.jobs.resources.progress.EVENT_TYPES",
    "ExecutionStatusEnum": "knowledge.models.Status",
    "FailureClassEnum": "scheduler.states.FAILURE_CLASSES",
    "FailureCodeEnum": "scheduler.states.FailureCode",
    "GpuLinkEnum": "knowledge.catalogue.catalogue_entries.EVERY_LINK",
    "InternalJobStateEnum": "scheduler.states.JobState",
    "InternalNodeStateEnum": "scheduler.states.NodeState",
    "JobChangeEnum": "scheduler.core.changes.possible.ChangeKind",
    "JobStageEnum": "scheduler.selectors.figures.times.JobStage",
    "JobStateEnum": "scheduler.selectors.public_states.PUBLIC_STATES",
    "JobWarningEnum": "scheduler.core.job_warnings.Risk",
    "LaneEnum": "portal.api.jobs.market.LANES",
    "LogTopicEnum": "knowledge.reading.logs.questions.TOPICS",
    "MarketPlanEnum": "scheduler.core.market.plans.NAMES",
    "NodeStateEnum": "scheduler.selectors.silence.NODE_STATES",
    "NodeTermsEnum": "scheduler.core.market.types.NodeTerms",
    "OptionVerdictEnum": "scheduler.core.decisions.weighed.OptionVerdict",
    "PredictionSourceEnum": "knowledge.core.domain.types.Source",
    "PriorityClassEnum": "scheduler.core.job_terms.CLASSES",
    "ReadFateEnum": "scheduler.services.provenance.read_values.ReadValueChoice",
    "ReadOriginEnum": "scheduler.services.provenance.read_values.ORIGINS",
    "ReadSourceEnum": "scheduler.models.ReadSource",
    "RoleEnum": "portal.accounts.models.Role",
    "SampleSourceEnum": "scheduler.models.markets.market.SampleSource",
    "SimulatedKnowledgeEnum": "scheduler.simulator.world.predictions.Fidelity",
    "SimulationStateEnum": "scheduler.models.simulations.STATES",
    "StartStageEnum": "scheduler.selectors.figures.start_questions.Stage",
    "StopForEnum": "scheduler.states.StopFor",
    "TopologyLevelEnum": "portal.api.nodes.topology.LEVELS",
    "UploadStateEnum": "scheduler.models.Upload.State",
    "WaitCodeEnum": "scheduler.states.WaitState",
    "YesNoEnum": "portal.api.jobs.terms.YES_NO",
}


def _words(path: str) -> Callable[[], list[Any]]:
    """Read the set when the document is made, which is after all apps are there."""

    def read() -> list[Any]:
        from drf_spectacular.plumbing import deep_import_string  # needs settings

        words: Any = deep_import_string(path)
        return getattr(words, "choices", None) or [
            word if isinstance(word, tuple) else str(word) for word in words
        ]

    return read


SETTINGS = {
    "TITLE": "Foretune",
    "DESCRIPTION": "Fine-tuning jobs whose time, memory and cost are predicted.",
    "VERSION": __version__,
    "OAS_VERSION": "3.1.0",
    "SERVERS": [{"url": "/", "description": "The portal that tells this document."}],
    "SCHEMA_PATH_PREFIX": "/api/",  # no part of the names of operations
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # Closed, all subjects are seen at once; of what is open, only what is near the window is drawn.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "docExpansion": "none"},
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,  # each word is its own label
    "COMPONENT_SPLIT_REQUEST": True,  # uploads are binary; what only answers have is left out of requests
    "ENUM_NAME_OVERRIDES": {name: _words(path) for name, path in WORDS.items()},
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "portal.api.docs.tag_subjects",
        "portal.api.examples.add_examples",
    ],
}
