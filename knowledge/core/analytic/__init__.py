"""Step time, memory and cost from first principles."""
