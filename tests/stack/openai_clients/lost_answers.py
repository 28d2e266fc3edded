"""Intents whose first answers are lost: `lost_answers.py FILE NUMBER`; prints the ids of jobs, one a line.

OPENAI_BASE_URL leads through a proxy that cuts them.
"""

import sys
from pathlib import Path

import openai

client = openai.OpenAI()
file = client.files.create(file=Path(sys.argv[1]), purpose="fine-tune")
for _ in range(int(sys.argv[2])):
    print(client.fine_tuning.jobs.create(model="builtin/tiny-llama", training_file=file.id).id)
