"""The portal's own past as the simulator plays it: jobs, nodes and rules."""
