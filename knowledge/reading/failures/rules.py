"""Expressions that tell a cause from one line of a log.

They stand in the order in which they are asked. None repeats a repetition, so that a hostile line costs
little. The messages are those of PyTorch, CUDA, NCCL, transformers, PEFT, bitsandbytes, datasets, DeepSpeed
and of this trainer.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class FailureRule(NamedTuple):
    """A group in the expression fills the cause's sentence."""

    cause: str
    expression: re.Pattern[str]


def compiled(table: tuple[tuple[str, str], ...]) -> tuple[FailureRule, ...]:
    return tuple(FailureRule(cause, re.compile(expression, re.IGNORECASE)) for cause, expression in table)


# A hub is no server on the node itself.
_NOT_HERE = r"^(?!.{0,300}host='(?:localhost|127\.|0\.0\.0\.0))"

# A cause by itself, whatever else the log says.
CERTAIN = compiled(
    (
        ("gpu-fault", r"uncorrectable (?:ECC|NVLink) error|fallen off the bus|\bNVRM: Xid\b|hardware stack"),
        ("gpu-fault", r"CUDA error: (?:unknown error|misaligned address|an illegal instruction)"),
        ("gpu-fault", r"GPU is lost|Unable to determine the device handle|unspecified launch failure"),
        ("gpu-driver", r"driver version is insufficient|NVIDIA driver on your system is too old"),
        ("gpu-driver", r"no CUDA-capable device|No CUDA GPUs are available|Found no NVIDIA driver"),
        ("gpu-driver", r"no kernel image is available|system not yet initialized|busy or unavailable"),
        ("gpu-driver", r"CUDA driver error: invalid"),
        (
            "gpu-driver",
            r"unsupported toolchain|forward compatibility was attempted|Driver/library version mismatch"
            r"|invalid device (?:function|ordinal)|CUDNN_STATUS_NOT_INITIALIZED"
            r"|not compatible with the current"
            r"|can only be used on CUDA devices|CUDA_HOME\b.{0,40}(?:not set|does not exist)"
            r"|(?:nvcc|ptxas) fatal|hipErrorNoBinaryForGpu|Unsupported gpu architecture",
        ),
        (
            "gpu-driver",
            r"CUDA Setup failed|CUDA SETUP: (?:Problem|Required library|CUDA detection)"
            r"|CUDA unknown error|Torch not compiled with CUDA enabled",
        ),
        (
            "gpu-driver",
            r"libbitsandbytes_\w+\.so|native library not available|lib(?:cu|nv"
            r"|nccl)[\w-]+\.so[.\d]*: cannot open",
        ),
        ("gpu-driver", r"does not match the version torch was compiled with|CUDA version .{0,80}mismatches"),
        (
            "gpu-driver",
            r"no NVIDIA GPU|cannot find any torch accelerator|undefined symbol\b"
            r"|No GPU found\. A GPU is needed for quantization",
        ),
        ("shared-memory", r"insufficient shared memory|shm/nccl|/dev/shm\b.{0,80}No space left"),
        ("shared-memory", r"out of shared memory|shared memory limit"),
        ("disk-full", r"No space left on device|Disk quota exceeded|File too large|disk is full"),
        ("disk-full", r"Input/output error|Stale file handle|errno (?:5|116)\b"),
        ("disk-full", r"Read-only file system|os error 28|errno 28\b|unexpected pos \d+ vs \d+"),
        ("disk-full", r"enforce fail at inline_container|PytorchStreamWriter failed writing"),
        ("disk-full", r"SafetensorError: Error while serializing"),
        ("host-memory", r"ray\.exceptions\.OutOfMemoryError|node running low on memory|OOMKilled"),
        (
            "host-memory",
            r"killed due to memory pressure|low on resource: memory|RayOutOfMemory|ObjectStoreFull"
            r"|ArrayMemoryError|\bErrno 12\b",
        ),
        (
            "host-memory",
            r"paging file is too small|cgroup out-of-memory|[Ee]xceeded (?:job |step )?memory limit",
        ),
        (
            "host-memory",
            r"oom[-_]kill|OOM Killed|Out of memory: Killed process|DefaultCPUAllocator|cannot allocate memory"
            r"|task \d+: Out Of Memory",
        ),
        ("host-memory", r"DataLoader worker .{0,40}killed by signal: Killed|std::bad_alloc|^MemoryError"),
        (
            "host-memory",
            r"can't allocate memory|not enough memory: you tried|Unable to allocate [\d.]+ [KMGT]iB",
        ),
        (
            "gpu-memory",
            r"out[ _]of[ _]memory|OutOfMemory|: Insufficient Memory|OOM when allocating|RESOURCE_?EXHAUSTED"
            r"|CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)|No available memory for the cache"
            r"|No executable batch|Free memory on device .{0,80}less than"
            r"|not enough (?:GPU|CUDA|device) memory",
        ),
        ("gpu-memory", r"CUDNN_STATUS_(?:ALLOC_FAILED|INTERNAL_ERROR_HOST_ALLOCATION_FAILED)"),
        ("gpu-memory", r"dispatched on the CPU or the disk|enough GPU RAM to fit"),
        ("gated-model", r"gated (?:repo|dataset)|GatedRepoError|is gated\b|awaiting a review"),
        (
            "gated-model",
            r"access to (?:model|dataset|repo).{0,120}restricted|requires authentication"
            r"|must be authenticated|(?:huggingface-cli|hf auth) login|Invalid credentials in Authorization",
        ),
        ("missing-model", r"is not a local folder and is not a valid model identifier|Repository Not Found"),
        (
            "missing-model",
            r"RepositoryNotFoundError|Incorrect path_or_model_id|HFValidationError|Repo id must",
        ),
        ("missing-model", r"does not appear to have a file named|no file named .{0,80}(?:found in|in) dir"),
        (
            "missing-model",
            r"Can't find '(?:adapter|config|tokenizer)|Model file not found|could not parse ModelProto"
            r"|failed finding central directory|invalid load key"
            r"|header too large|Unable to load vocabulary|PytorchStreamReader failed",
        ),
        ("missing-model", r"The model directory .{0,300}(?:does not exist|is not below)|There is no model "),
        (
            "missing-model",
            r"SafetensorError|invalid header|MetadataIncompleteBuffer|(?<!Local)EntryNotFoundError",
        ),
        ("missing-model", r"The model .{0,300}(?:is not on this node|cannot be loaded from)"),
        (
            "missing-model",
            r"No such file or directory: .{0,300}(?:\.(?:pth|pt|bin|safetensors|ckpt|gguf)"
            r"|(?:tokenizer|(?:lit|adapter|generation|model)_)config\.json)\b",
        ),
        ("missing-model", r"(?:--|\b)checkpoint[_-]dir\b.{0,300}(?:is not a checkpoint|is missing the file)"),
        (
            "gated-model",
            r"\b(?:401|403)\b.{0,40}(?:Client Error|Unauthorized|Forbidden).{0,200}huggingface\.co"
            r"|Invalid (?:user )?token|must (?:log ?in|be logged in)\b",
        ),
        ("missing-model", r"Can't load (?:tokenizer|the configuration|the model|config|feature)"),
        ("hub-unreachable", r"Cannot reach https?://"),
        ("hub-unreachable", r"couldn't connect to 'https?://|hub cannot be reached|LocalEntryNotFoundError"),
        (
            "hub-unreachable",
            rf"{_NOT_HERE}.{{0,500}}(?:Max retries exceeded|Failed to establish a new connection)"
            r"|NameResolutionError|Temporary failure in name resolution|\('Connection aborted\.'",
        ),
        (
            "hub-unreachable",
            r"outgoing traffic has been disabled|OfflineModeIsEnabled|huggingface.{0,60}timed out",
        ),
        ("hub-unreachable", r"(?:429|5\d\d) (?:Client|Server) Error|ReadTimeoutError|ConnectTimeout"),
        ("hub-unreachable", r"Name or service not known|SSLError"),
        (
            "hub-unreachable",
            r"httpx\.(?:Connect|Read)\w+|httpcore\.(?:Connect|Read)\w+|ProxyError"
            r"|IncompleteRead|Consistency check failed|Unable to parse .{0,80}huggingface\.co",
        ),
        ("nothing-to-learn", r"has anything to learn within"),
        (
            "no-bfloat16",
            r"has no bfloat16|doesn't support bf16|bf16/gpu|bfloat16 is (?:only|not) supported"
            r"|'bf16' requires",
        ),
        ("old-gpu", r"requires (?:an )?Ampere|only supports? Ampere|devices? with (?:compute )?capability"),
        ("old-gpu", r"out of resource: shared memory|\bGPUs? with compute capability\b"),
        ("unsuitable-model", r"no chat template is set|Generation ?Config (?:instance )?is invalid"),
        ("unsuitable-model", r"Target modules .{0,300}not found in the base model|specify `?target_modules"),
        (
            "unsuitable-model",
            r"not supported for (?:this|quanti)|model type `?\w+`? but Transformers does not",
        ),
        (
            "unsuitable-model",
            r"Unrecognized (?:model|configuration class)|no tokenizer\.json|no chat_template",
        ),
        ("unsuitable-model", r"chat_template\b(?!\S{0,20}\.py).{0,80}\b(?:not|none|missing|must)\b"),
        ("unsuitable-model", r"does not support gradient checkpointing|cannot perform fine-tuning on purely"),
        ("unsuitable-model", r"does not support Flash ?Attention|trust_remote_code=True"),
        (
            "unsuitable-model",
            r"does not have a pad(?:ding)? ?token|Tokenizer class .{1,80} does not exist"
            r"|no `?pad_token`?|found in the vocab"
            r"|does not support `?device_map|base model.{0,60}not supported",
        ),
        ("token-range", r"device-side assert|srcIndex < srcSelectDimSize|index out of range in self"),
        ("token-range", r"Assertion .{0,120}index out of bounds"),
        ("token-range", r"Assertion `?(?:t >= 0|-sizes)|Target -?\d+ is out of bounds"),
        ("loss-not-finite", r"not a finite number|loss (?:is|was|became) (?:nan|inf)|(?:nan|inf) loss\b"),
        ("loss-not-finite", r"Current loss scale already at minimum|Minimum loss scale reached"),
        (
            "loss-not-finite",
            r"(?:contains?|either) `?(?:inf`?, `?)?nan|returned nan values|loss.{0,20}= ?nan",
        ),
        ("loss-not-finite", r"non-finite|^FloatingPointError"),
        (
            "loss-not-finite",
            r"\b(?:nan|inf)s?\b.{0,30}\b(?:detected|encountered|found)\b|invalid values:?\s.{0,40}\bnan\b"
            r"|\b(?:detected|encountered|found)\b.{0,30}\bnans?\b",
        ),
        ("bad-data", r"\.jsonl?\b.{0,100}cannot be used.{0,20}?\b((?:line|row) [\d,]+)"),
        ("bad-data", r"\.jsonl?\b.{0,100}cannot be used|chat template refuses a row|train\.jsonl is missing"),
        ("bad-data", r"JSON parse error.{0,200}(in row \d+)|ArrowInvalid|Error tokenizing data"),
        ("bad-data", r"DatasetGenerationError|DatasetGenerationCastError|DataFilesNotFoundError"),
        ("bad-data", r"JSONDecodeError.{0,200}(line \d+)|JSONDecodeError|UnicodeDecodeError|CastError"),
        ("bad-data", r"Unable to create tensor|too many dimensions 'str'"),
        (
            "bad-data",
            r"num_samples should be a positive integer|expected sequence of length|EmptyDatasetError",
        ),
        ("bad-data", r"(?:jsonl?|csv|data ?set)\b.{0,60}(?:should|must) (?:have|contain)\b"),
        ("bad-data", r"train set will be empty|data ?set is empty"),
        (
            "bad-data",
            r"DatasetNotFoundError|Couldn't find (?:a dataset|any data|file at)|Unknown split \"|Bad split: "
            r"|Unable to find '.{0,200}\.(?:jsonl?|csv|parquet)|TemplateError|jinja2\.\w+\.UndefinedError"
            r"|[Uu]ndefined dataset|doesn't exist on the Hub.{0,60}data ?set|No (?:valid )?data files? found",
        ),
        (
            "bad-data",
            r"No such file or directory: .{0,200}(?:/(?:train|dev|valid|test|data ?set)s?/"
            r"|\.(?:tsv|csv|jsonl|parquet|arrow|txt|wav|flac|mp3|png|jpe?g)\b)",
        ),
        ("bad-data", r"column names don't match|Column .{0,80}(?:not in|doesn't exist)|Couldn't cast"),
        (
            "bad-data",
            r"\bcolumns?\b.{0,120}\b(?:data ?set|not (?:in|found)|missing)\b"
            r"|\b(?:data ?set|missing|[Ii]nvalid)\b.{0,80}\bcolumns?\b",
        ),
        ("bad-data", r"text input must (?:be )?of type `?str|EncodeInput must be|Conversation roles must"),
        (
            "checkpoint",
            r"checkpoint (?:cannot be resumed|is of another)|size mismatch for|Missing key\(s\) in"
            r"|Error\(s\) in loading state_dict",
        ),
        ("checkpoint", r"valid checkpoint found in output|loaded state dict (?:contains|has)"),
        (
            "checkpoint",
            r"Weights only load failed|WeightsUnpickler error|Can't find a (?:valid )?checkpoint"
            r"|No (?:valid )?checkpoint (?:was )?found|Unable to find latest file|Unexpected key\(s\) in"
            r"|DeepSpeed checkpoint",
        ),
        ("missing-package", r"No module named '?([\w.]{1,60})|cannot import name '?([\w.]{1,60})"),
        (
            "missing-package",
            r"requires the following packages|PackageNotFoundError|pip install -?U? ?'?([\w-]+)",
        ),
        (
            "missing-package",
            r"\b([\w-]{2,30}) backend is required|(?:find|found) (?:a )?(?:C|CUDA|gcc) compiler",
        ),
        (
            "missing-package",
            r"\b([\w-]{2,30}) (?:seems (?:to be )?not (?:to be )?|is not |needs to be |must be )installed"
            r"|ImportError: \S{1,80}\.so[.\d]*: cannot open|Ninja is required|DLL load failed"
            r"|Error building extension|requires the (\S{2,40}) (?:library|package)",
        ),
        (
            "missing-package",
            r"version `?(?:GLIBC|GLIBCXX|CXXABI)\w*|untagged enum \w{2,60}Wrapper"
            r"|([\w-]{2,40})[><=]=[\d.]+ is required",
        ),
        ("missing-package", r"fatal error: ([\w./-]{1,60})\.h(?:pp)?: No such file"),
        (
            "missing-package",
            r"^(?:[\w./-]{1,40}: )*(?:line \d{1,6}: )?([\w.-]{1,60}): (?:command )?not found\b",
        ),
        ("bad-arguments", r": error: (?:argument |unrecognized|the following arguments|ambiguous option)"),
        ("bad-arguments", r"not used by the (?:\w{0,10})ArgumentParser|: invalid choice: "),
        (
            "bad-arguments",
            r"Could not consume arg|is not in struct|Invalid value for '|Parser key|remaining_arg"
            r"|(?:unknown|unrecognized|unexpected) (?:argument|option|flag)s?\b"
            r"|can't open file '.{1,300}Errno 2\b|Error merging '|interpolation key '|Key '.{1,80}' not in '"
            r"|Primary config|TOMLDecodeError|DeepSpeedConfigError|MisconfigurationException",
        ),
        (
            "bad-arguments",
            r"validation errors? for \w+|ConfigKeyError|ConfigAttributeError|MissingMandatoryValue"
            r"|Could not override"
            r"|is not equal to micro_batch_per_gpu|config values that mismatch|yaml\.(?:scanner|parser)\.\w+"
            r"|requires the save and eval|Missing required argument|No such option: -"
            r"|Got unexpected extra argument",
        ),
        ("time-limit", r"DUE TO TIME LIMIT|walltime \d+ exceeded limit|TERM_RUNLIMIT"),
        ("permission", r"PermissionError|Permission denied|Operation not permitted|WinError (?:5|1314)\b"),
    )
)
