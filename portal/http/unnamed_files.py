"""Where large uploads lie before a view takes them.

They are files without a name, which vanish with their process.
"""

from __future__ import annotations

import tempfile
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler


class NamelessFileHandler(FileUploadHandler):
    """An upload handler that keeps uploads in files without a name.

    Django's own handler leaves uploads under way behind when the process is killed.
    """

    file: UploadedFile[bytes]

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        content = tempfile.TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR)  # noqa: SIM115 -- its view closes it
        kind, more = self.content_type, self.content_type_extra
        self.file = UploadedFile(content, self.file_name, kind, 0, self.charset, more)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.file.write(raw_data)

    def file_complete(self, file_size: int) -> UploadedFile[bytes]:
        self.file.seek(0)
        self.file.size = file_size
        return self.file

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()
