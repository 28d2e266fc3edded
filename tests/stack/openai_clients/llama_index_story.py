"""LlamaIndex's engine by environment only: `llama_index_story.py FILE`."""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import openai
import tiktoken

# The engine counts tokens before it sends a file, by a table that tiktoken would fetch from the internet.
tiktoken.get_encoding = lambda _: SimpleNamespace(encode=str.split)

from llama_index.finetuning import OpenAIFinetuneEngine  # noqa: E402

# The engine takes chats of ten rows or more alone.
pairs = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
chats = [
    {
        "messages": [
            {"role": "user", "content": pair["prompt"]},
            {"role": "assistant", "content": pair["completion"]},
        ]
    }
    for pair in pairs
]
rows = Path(sys.argv[1]).with_name("chats.jsonl")
rows.write_text("".join(json.dumps(chat) + "\n" for chat in chats))
engine = OpenAIFinetuneEngine("builtin/tiny-llama", str(rows))
engine.finetune()
end = time.monotonic() + 300
while engine.get_current_job().status != "succeeded" and time.monotonic() < end:
    time.sleep(0.3)
assert engine.get_current_job().fine_tuned_model.startswith("ft:builtin/tiny-llama:")
try:
    OpenAIFinetuneEngine("gpt-4o-mini", str(rows)).finetune()
except openai.NotFoundError as error:
    assert error.code == "model_not_found"  # any 400 would be tried again for ever
else:
    raise AssertionError("an unknown model was taken")
print("told")
