"""How drf-spectacular describes the REST interface."""

from trainer import __version__

SETTINGS = {
    "TITLE": "Foretune",
    "DESCRIPTION": "Fine-tuning jobs whose time, memory and cost are predicted.",
    "VERSION": __version__,
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/",  # no part of the names of operations
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # Closed, all subjects are seen at once; of what is open, only what is near the window is drawn.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "docExpansion": "none"},
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,  # each word is its own label
    "COMPONENT_SPLIT_REQUEST": True,  # uploads are binary; what only answers have is left out of requests
    "ENUM_NAME_OVERRIDES": {
        "RoleEnum": "portal.accounts.models.Role.choices",
        "UploadStateEnum": [
            (state, state.capitalize()) for state in ("pending", "completed", "cancelled", "expired")
        ],
        "SimulationStateEnum": "scheduler.models.simulations.STATES",
        "JobStateEnum": "scheduler.selectors.public_states.STATE_CHOICES",
        "AfterKindEnum": [(kind, kind) for kind in ("succeeded", "ended")],
        "NodeTermsEnum": [(kind, kind) for kind in ("owned", "on_demand", "spot")],
        "TopologyLevelEnum": [(word, word) for word in ("node", "socket", "numa", "pcie", "nvlink")],
        "PredictionSourceEnum": [(word, word) for word in ("exact", "model", "own", "prior", "default")],
        "PriorityClassEnum": [(word, word) for word in ("low", "normal", "high", "urgent")],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "portal.api.docs.tag_subjects",
    ],
}
