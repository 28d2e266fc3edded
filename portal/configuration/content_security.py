"""The content security policy: pages load their own files, and nothing else."""

from csp.constants import SELF, UNSAFE_INLINE

POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF, UNSAFE_INLINE],  # Plotly writes style elements; scripts stay strict
        "img-src": [SELF, "data:", "blob:"],
        "object-src": ["'none'"],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": ["'none'"],
    }
}
