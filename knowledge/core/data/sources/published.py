"""MLPerf llama2_70b_lora and VectorLM: small published tables."""

from __future__ import annotations

from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources.small import small_config
from knowledge.core.data.sources.table import Cells, read
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config

MLPERF_TOKENS = 8192
HABANA = "PyTorch 2.2.0"  # DeepSpeed on Gaudi
MLPERF = ("global_batch_size", "accelerator_model_name", "total_accelerators", "samples_per_second")
VECTORLM = ("model_name", "method", "gpu_model", "number_gpus", "per_device_batch_size", "is_valid")


def parse_mlperf(text: str, catalogue: Catalogue) -> list[Measurement]:
    """Parse MLPerf Training result logs.

    Only finished runs are published, so validity is not learnt from them.
    """
    return read(text, MLPERF, _mlperf, catalogue)


def parse_vectorlm(text: str, catalogue: Catalogue) -> list[Measurement]:
    """VectorLM's throughput table; rows without a stated sequence length are left out."""
    return read(text, VECTORLM, _vectorlm, catalogue)


def _mlperf(cells: Cells) -> Measurement:
    gpus, batch = cells.count("total_accelerators"), cells.count("global_batch_size")
    nodes = cells.whole("number_of_nodes", 1) or 1
    rate = cells.number("samples_per_second", 1e-9)
    steps = cells.whole("gradient_accumulation_steps", 1) or 1
    software = cells.text("framework") or ""
    config = Config(
        model_name=cells.catalogue.model("llama2_70b_lora").model_name,
        tuning="lora",
        gpu_model=cells.gpu("accelerator_model_name"),
        number_gpus=gpus,
        number_nodes=nodes if gpus % nodes == 0 else 1,
        tokens_per_sample=MLPERF_TOKENS,
        per_device_batch_size=max(1, batch // (gpus * steps)),
        gradient_accumulation_steps=steps,
        model_parallel=max(1, gpus * steps // batch),
        precision=None if _is_fused(software) else "bfloat16",
        quantization="none",
        lora_r=cells.whole("lora_rank", 1),
        lora_alpha=cells.whole("lora_alpha", 1),
        fast_kernels=_is_fused(software),
        sharding=_mlperf_sharding(software, gpus),
        network="none" if nodes == 1 else "infiniband",
        software=software,
        run_protocol=f"mlperf-{cells.text('round')}",
    )
    return Measurement(
        config=config,
        status="ok",
        source="mlperf",
        origin=f"{cells.text('submitter')}/{cells.text('system')}/{cells.text('result_file')}",
        effective_batch_size=batch,
        tokens_per_second=None if rate is None else rate * MLPERF_TOKENS,
        runtime_s=cells.number("time_to_train_s", 1e-3),
        learn_validity=False,
    )


def _is_fused(software: str) -> bool:
    """Return whether the software uses fused kernels.

    NeMo and similar software have the Transformer Engine; DeepSpeed ran the reference, in bfloat16.
    """
    return not ("deepspeed" in software.lower() or software == HABANA)


def _mlperf_sharding(software: str, gpus: int) -> str:
    """Return the sharding of an MLPerf submission.

    DeepSpeed submissions shard as FSDP does (ZeRO-3); the others keep one model-parallel copy per
    replica.
    """
    if gpus == 1:
        return "none"
    return "fsdp" if "deepspeed" in software.lower() else "ddp"


def _vectorlm(cells: Cells) -> Measurement | None:
    length = cells.whole("tokens_per_sample", 1)
    if length is None:
        return None
    return Measurement(
        config=small_config(cells, length, cells.count("per_device_batch_size")),
        status="ok" if cells.answer("is_valid") else "oom",
        source="vectorlm",
        origin=cells.text("snapshot_date") or "",
        tokens_per_second=cells.number("tokens_per_second", 1e-6),
    )
