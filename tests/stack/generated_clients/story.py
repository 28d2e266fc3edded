"""The story of a program with the package that openapi-python-client makes of the schema.

Run by its own interpreter: `story.py ADDRESS TOKEN FILE...`; it prints the id of the job that it trained and
the SHA-256 of the adapter that it downloaded.
"""

import hashlib
import sys
from io import BytesIO
from pathlib import Path

from foretune_client import AuthenticatedClient
from foretune_client.api.jobs import (
    files_create,
    files_list,
    jobs_artifact_download,
    jobs_create,
    jobs_retrieve,
)
from foretune_client.models import (
    FileOut,
    FileOutPage,
    JobInRequest,
    JobOut,
    JobsRetrieveUntil,
    JobStateEnum,
    Params,
    TuningEnum,
    UploadRequest,
)
from foretune_client.types import UNSET, File, Unset

ADAPTER = "output/adapter_model.safetensors"


def main(address: str, token: str, *paths: str) -> None:
    client = AuthenticatedClient(address, token, raise_on_unexpected_status=True)
    files: list[str] = []
    for path in map(Path, paths):
        content = File(BytesIO(path.read_bytes()), path.name)
        file = files_create.sync(client=client, body=UploadRequest(content))
        assert isinstance(file, FileOut), file
        files.append(file.id)
    listed: list[str] = []
    after: str | Unset = UNSET
    for _ in files:
        page = files_list.sync(client=client, limit=1, after=after)
        assert isinstance(page, FileOutPage), page
        listed += [file.id for file in page.data]
        after = page.next_ or UNSET
    assert listed == files[::-1], listed
    params = Params(tuning=TuningEnum.LORA, max_steps=2, tokens_per_sample=64)
    body = JobInRequest(model="builtin/tiny-llama", training_file=files[0], params=params)
    job = jobs_create.sync(client=client, body=body)
    while isinstance(job, JobOut) and job.ended_at is None:
        job = jobs_retrieve.sync(job.id, client=client, wait_s=3, until=JobsRetrieveUntil.ENDED)
    assert isinstance(job, JobOut), job
    assert job.state is JobStateEnum.SUCCEEDED, job.error
    adapter = jobs_artifact_download.sync(job.id, ADAPTER, client=client)
    assert isinstance(adapter, File), adapter
    print(job.id, hashlib.sha256(adapter.payload.read()).hexdigest())


if __name__ == "__main__":
    main(*sys.argv[1:])
