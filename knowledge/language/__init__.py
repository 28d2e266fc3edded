"""Optional language models behind any server with `POST /v1/chat/completions`."""
