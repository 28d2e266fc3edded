"""What a job asks for beside its training: closeness, spot nodes, a time limit."""
