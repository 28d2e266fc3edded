"""What pages of other origins may send to programs' addresses, and read there."""

from corsheaders.defaults import default_headers

PATHS = r"^/(api|v1|openai|oauth)/"
_STAINLESS = (  # OpenAI's client sends them with each request
    "arch", "async", "helper-method", "lang", "os", "package-version", "raw-response", "read-timeout",
    "retry-count", "runtime", "runtime-version", "timeout",
)  # fmt: skip
SENT_HEADERS = (
    *default_headers,
    "api-key",
    "content-sha256",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "if-range",
    "openai-organization",
    "openai-project",
    "range",
    "x-request-id",
    *(f"x-stainless-{name}" for name in _STAINLESS),
)
READ_HEADERS = (
    "ETag",
    "Location",
    "Retry-After",
    "X-Request-ID",
    "RateLimit",
    "RateLimit-Policy",
    "Foretune-Version",
    "Idempotency-Replayed",
    "Content-Range",
    "Content-Disposition",
    "Repr-Digest",
)
