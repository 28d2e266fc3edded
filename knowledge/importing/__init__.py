"""Past executions from files and from the Hugging Face Hub."""
