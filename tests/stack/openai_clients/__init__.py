"""Programs that unmodified clients of OpenAI run, each in an environment of its own."""
