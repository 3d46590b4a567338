#!/usr/bin/env python
"""Run Evalsite's management commands; `manage.py help` lists them."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    try:
        from django.core.management import execute_from_command_line
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing}. Run `make env`, then use .venv/bin/python manage.py.")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
