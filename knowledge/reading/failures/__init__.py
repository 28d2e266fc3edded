"""Why a training failed, as its log and its end tell it."""
