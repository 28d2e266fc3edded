"""One definition for each figure of a job, for every interface: docs/figures.md."""
