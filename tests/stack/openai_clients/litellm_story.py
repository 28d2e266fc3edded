"""litellm's SDK: `litellm_story.py FILE`, with OPENAI_BASE_URL and OPENAI_API_KEY set."""

import os
import sys
import time
from pathlib import Path

import litellm

WHERE = {
    "custom_llm_provider": "openai",
    "api_base": os.environ["OPENAI_BASE_URL"],
    "api_key": os.environ["OPENAI_API_KEY"],
}

file = litellm.create_file(file=Path(sys.argv[1]), purpose="fine-tune", **WHERE)
job = litellm.create_fine_tuning_job(model="builtin/tiny-llama", training_file=file.id, **WHERE)
end = time.monotonic() + 300
while job.status not in ("succeeded", "failed", "cancelled") and time.monotonic() < end:
    time.sleep(0.3)
    job = litellm.retrieve_fine_tuning_job(fine_tuning_job_id=job.id, **WHERE)
assert job.status == "succeeded", job
assert job.id in [one.id for one in litellm.list_fine_tuning_jobs(limit=5, **WHERE).data]
second = litellm.create_fine_tuning_job(
    model="builtin/tiny-llama", training_file=file.id, hyperparameters={"n_epochs": 2}, **WHERE
)
assert litellm.cancel_fine_tuning_job(fine_tuning_job_id=second.id, **WHERE).status == "cancelled"
assert litellm.file_delete(file_id=file.id, **WHERE).deleted
print("told")
