"""Limits on one upload. Each is reached before any limit of a framework or of memory."""

from __future__ import annotations

from grading.engine.expand import Caps

MAX_FILE_BYTES = 256 * 1024**2
# A line of JSON Lines, an entry of a JSON document, or a program file.
MAX_RECORD_BYTES = 4 * 1024**2
MAX_TEXT_CHARS = 1024**2
MAX_RECORDS = 500_000
MAX_SAMPLES = 500_000
MAX_SAMPLE_INDEX = 9_999
# Each costs a step in Python while a JSON document is cut into entries.
MAX_BRACKETS = 20_000_000
MAX_MEMBERS = 50_000
# zipfile reads the whole list of members before it gives the first one.
MAX_MEMBER_LIST_BYTES = 16 * 1024**2
# The decoder holds one window in memory; up to level 20 they are not larger.
MAX_ZSTD_WINDOW_BYTES = 32 * 1024**2

TEXT_CAPS = Caps(line_bytes=MAX_RECORD_BYTES, total_bytes=512 * 1024**2)
