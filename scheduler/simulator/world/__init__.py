"""The simulated cluster: nodes, runs, ground truth and predictions."""
