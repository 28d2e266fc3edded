#!/usr/bin/env python
"""Django's command line."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    os.environ.setdefault("STATEMENT_TIMEOUT_S", "0")  # migrations and imports take as long as they take
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
