"""GPUs for gangs: free, near each other, or made free."""
