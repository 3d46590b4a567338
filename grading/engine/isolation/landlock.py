"""Rulesets for Landlock, by the version of its interface that the kernel has.

Numbers and names are those of linux/landlock.h. Landlock needs no privilege and no namespace.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_CREATE_RULESET = 444
_ASK_VERSION = 1

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
_FIRST_RIGHTS = (1 << 13) - 1
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEVICE = 1 << 15
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11

READ = EXECUTE | READ_FILE | READ_DIR
LOOK = READ_FILE | READ_DIR
DEVICE = READ_FILE | WRITE_FILE | TRUNCATE
# All but devices and sockets.
WRITE = (_FIRST_RIGHTS | REFER | TRUNCATE) & ~(_MAKE_CHAR | _MAKE_SOCK | _MAKE_BLOCK)

_TCP = 3
_SCOPES = 3
NETWORK_VERSION = 4
SCOPE_VERSION = 6


@dataclass(frozen=True, slots=True)
class Rule:
    """What may be done with a path and all beneath it; a path that is not there is left out."""

    path: str
    rights: int


def version() -> int:
    """The kernel's version of Landlock; 0 where it has none or does not let us."""
    if sys.platform != "linux":
        return 0
    found: int = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    return max(found, 0)


def handled(abi: int) -> int:
    """The file rights that a ruleset of this version takes away."""
    rights = _FIRST_RIGHTS
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEVICE)):
        rights |= right if abi >= since else 0
    return rights


def plan(abi: int, rules: Iterable[Rule]) -> dict[str, Any]:
    """The step for :mod:`grading.engine.confine`: what is handled, and the exceptions.

    TCP is refused altogether from version 4, signals and abstract sockets stay inside from 6.
    """
    rights = handled(abi)
    attribute = struct.pack("=Q", rights)
    if abi >= NETWORK_VERSION:
        attribute += struct.pack("=Q", _TCP)
    if abi >= SCOPE_VERSION:
        attribute += struct.pack("=Q", _SCOPES)
    return {
        "ruleset": attribute.hex(),
        "rules": [[rule.path, rule.rights & rights] for rule in rules],
    }


def around(root: str, hidden: Sequence[str]) -> list[str]:
    """Paths that together are ``root`` without the ``hidden`` ones.

    Rules only add, so a directory with something hidden inside is named by its entries.
    """
    inside = [path for path in hidden if path == root or path.startswith(root.rstrip("/") + "/")]
    if not inside:
        return [root]
    if root in inside:
        return []
    try:
        # What a link leads to is judged by where it is.
        entries = sorted(entry.path for entry in os.scandir(root) if not entry.is_symlink())
    except OSError:
        return []
    return [path for entry in entries for path in around(entry, inside)]
