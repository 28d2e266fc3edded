"""What logs told is kept: causes of failures, and answers to questions."""
