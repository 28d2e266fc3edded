"""The machine: GPUs, network, users and usage."""
