"""The options of jobs: computed, kept, cut to a budget, explained if missing."""
