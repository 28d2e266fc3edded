"""Base models, GPUs, configurations and workloads as values."""
