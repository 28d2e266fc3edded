"""The names under which trainers write each field: one table.

The first are the plainest.
"""

from __future__ import annotations

# Field, then names that mean it and nothing else, then names that mean it if no plainer one is stated.
_NAMES: dict[str, tuple[str, str]] = {
    "task": (
        "stage rlhf_type trainer_task finetuning_task",
        "",
    ),
    "base_model": (
        "model_name_or_path base_model base_model_name_or_path pretrained_model_name_or_path model_id"
        " model_name base_model_name hf_model_name_or_path pretrained_model_name hf_path pretrain"
        " model_checkpoint model_id_or_path actor_model_name_or_path pretrained_model base_model_id"
        " base_model_path hf_model model_path pretrained_model_path pretrained checkpoint_path_to_base"
        " llm_model_name_or_path base_model_config init_from llm_backbone",
        "model checkpoint_dir checkpoint bert_token_file restore_from_path load_model_path"
        " model checkpoint_dir checkpoint bert_token_file restore_from_path load_model_path",
    ),
    "lora_r": (
        "lora_r lora_rank lora_dim adapter_dim peft_lora_r",
        "rank",
    ),
    "lora_alpha": (
        "lora_alpha peft_lora_alpha lora_scaling_alpha",
        "alpha",
    ),
    "target_modules": (
        "lora_target_modules lora_modules lora_target lora_targets target_modules lora_attn_modules"
        " lora_target_modules lora_modules lora_target lora_targets target_modules lora_attn_modules",
        "",
    ),
    "quantization": (
        "quantization quantize quant_type quantization_method",
        "",
    ),
    "tokens_per_sample": (
        "tokens_per_sample max_seq_length max_seq_len sequence_len cutoff_len model_max_length"
        " sequence_length seq_length seq_len encoder_seq_length block_size max_source_length"
        " context_length max_sequence_length max_tokens_per_sample max_input_length maxlen max_length"
        " context_len ctx_len train_seq_len",
        "max_len max_token_length",
    ),
    "per_device_batch_size": (
        "per_device_train_batch_size micro_batch_size train_micro_batch_size_per_gpu"
        " per_device_batch_size per_gpu_train_batch_size micro_train_batch_size"
        " device_train_microbatch_size batch_size_per_device device_train_batch_size per_device_batch"
        " batch_size_per_gpu local_batch_size train_batch_size_per_gpu samples_per_gpu mbs micro_batch"
        " batch_size_training",
        "batch_size bs bsz batchsize",
    ),
    "gradient_accumulation_steps": (
        "gradient_accumulation_steps accumulate_grad_batches gradient_accumulation grad_accum_steps"
        " gradient_accumulation_iters accumulative_counts grad_accum accumulation_steps grad_acc_steps"
        " gradient_accumulate_every accum_steps grad_accumulation_steps"
        " num_gradient_accumulation_steps update_freq accum_freq gas grad_acc acc_steps grad_accumulation",
        "accum accumulation accumulate",
    ),
    "effective_batch_size": (
        "global_batch_size effective_batch_size global_train_batch_size total_batch_size"
        " total_train_batch_size gbs",
        "",
    ),
    "epochs": (
        "num_train_epochs num_epochs epochs max_epochs n_epochs total_epochs num_epoch train_epochs"
        " training_epochs nepochs max_epoch",
        "epoch",
    ),
    "max_steps": (
        "max_steps max_train_steps train_iters total_training_steps max_iters num_train_steps"
        " training_steps num_iterations num_training_steps total_steps train_steps max_iterations"
        " num_steps max_updates max_update",
        "steps iterations iters",
    ),
    "learning_rate": (
        "learning_rate lr base_lr peak_lr max_lr initial_learning_rate actor_learning_rate init_lr"
        " learning_rate lr base_lr peak_lr max_lr initial_learning_rate actor_learning_rate init_lr",
        "",
    ),
    "lr_schedule": (
        "lr_scheduler_type lr_scheduler lr_schedule lr_decay_style lr_scheduler_name scheduler_type"
        " learning_rate_scheduler lr_scheduler_fn decay_type",
        "scheduler schedule",
    ),
    "weight_decay": ("weight_decay", ""),
    "adam_beta2": ("adam_beta2 adam_beta_2", ""),
    "clip_norm": ("max_grad_norm clip_grad_norm gradient_clip_val grad_clip_norm", ""),
    "optimizer": (
        "optim optimizer optimizer_name optim_name optimizer_type optim_type",
        "",
    ),
    "precision": (
        "precision mixed_precision torch_dtype model_dtype train_dtype mixed_precision_type"
        " torch_dtype_str mixed_precision_dtype",
        "dtype bnb_4bit_compute_dtype compute_dtype amp_dtype param_dtype autocast_dtype",
    ),
    "gradient_checkpointing": (
        "gradient_checkpointing enable_activation_checkpointing activation_checkpointing"
        " use_gradient_checkpointing grad_checkpoint gradient_checkpoint enable_gradient_checkpointing"
        " use_activation_checkpointing enable_gradient_checkpoint fsdp_activation_checkpointing"
        " checkpoint_activations recompute_activations use_recompute",
        "recompute",
    ),
    "number_gpus": (
        "number_gpus num_gpus n_gpus num_processes ngpus gpu_num total_gpus world_size",
        "gpus",
    ),
    "gpus_per_node": (
        "nproc_per_node n_gpus_per_node gpus_per_node num_gpus_per_node devices ngpus_per_node"
        " trainer_n_gpus_per_node gpus_per_host",
        "",
    ),
    "number_nodes": (
        "num_nodes nnodes num_machines number_nodes n_nodes",
        "nodes",
    ),
    "model_parallel": (
        "tensor_model_parallel_size pipeline_model_parallel_size tensor_parallel_size tp_size pp_size"
        " pipeline_parallel_size context_parallel_size tensor_parallel_degree pipeline_parallel_degree",
        "",
    ),
    "gpu_model": (
        "gpu_type gpu_model accelerator_type",
        "",
    ),
    "dataset": (
        "dataset_name dataset dataset_id train_file dataset_name_or_path dataset_path train_data_path"
        " data_path train_dataset dataset_repo_id train_data data_files train_files prompt_data"
        " dataset_mixer hf_dataset training_file train_path data_file dataset_names"
        " dataset_mixture_path train_data_file hf_name train_dataset_name data_name_or_path",
        "data datasets dataset_dir train data_dir data_name",
    ),
    "dataset_rows": (
        "max_samples max_train_samples num_train_samples dataset_rows n_samples num_samples"
        " dataset_size train_size num_train_examples",
        "rows",
    ),
    "seed": (
        "seed random_seed global_seed manual_seed train_seed seed_everything",
        "",
    ),
    "checkpoint_interval": (
        "save_steps save_interval checkpoint_interval checkpointing_steps save_every save_freq"
        " every_n_train_steps save_step checkpoint_every save_every_n_steps ckpt_interval"
        " checkpoint_freq save_every_n_train_steps save_n_steps ckpt_every save_interval_updates",
        "",
    ),
}
PLAIN, VAGUE = 8, 4
ALIASES: dict[str, tuple[str, int]] = {
    name: (field, weight)
    for field, groups in _NAMES.items()
    for weight, group in zip((PLAIN, VAGUE), groups, strict=True)
    for name in group.split()
}
