"""Throw-away directories for sandboxed processes, and their removal whatever was left in them."""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Iterator

from grading.engine.outcome import PlatformError

PREFIX = "evalsite-cell-"

logger = logging.getLogger(__name__)


def make_workdir(user: int | None = None) -> str:
    """A new empty directory of mode 0700 under the system's temporary directory.

    Its name tells who made it, for :func:`remove_abandoned`. ``user`` is who is to own it.
    Raises PlatformError.
    """
    try:
        made = tempfile.mkdtemp(prefix=f"{PREFIX}{_pid_namespace()}-{os.getpid()}-")
        if user is not None:
            os.chown(made, user, user)
        return made
    except OSError as error:
        raise PlatformError(f"cannot make a work directory: {error}") from error


def remove_abandoned() -> None:
    """Remove this user's work directories whose maker was killed before it could."""
    directory = tempfile.gettempdir()
    mine = f"{PREFIX}{_pid_namespace()}-"
    for entry in os.scandir(directory):
        maker = entry.name.removeprefix(mine).split("-")[0]
        if not entry.name.startswith(mine) or not maker.isdigit():
            continue
        if not _exists(None, f"/proc/{maker}") and _owned(entry):
            remove_tree(entry.path)


def _owned(entry: os.DirEntry[str]) -> bool:
    """Whether it was made by this user, which root may have handed to the user of a cell."""
    try:
        return os.getuid() in (0, entry.stat(follow_symlinks=False).st_uid)
    except FileNotFoundError:
        return False


def _pid_namespace() -> int:
    """Process ids mean something within one namespace only."""
    return os.stat("/proc/self/ns/pid").st_ino


def remove_tree(path: str) -> None:
    """Remove a directory and all in it; symbolic links are unlinked, never followed.

    Works at any depth and on directories without permissions: sub-directories are moved up
    to the top one, so neither recursion nor path length grows with the nesting. What cannot
    be removed is logged, never raised: it runs while a run's verdict is already known.
    """
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("cannot open the work directory %s: %s", path, error)
        return
    try:
        _empty(top)
        os.rmdir(path)
    except OSError as error:
        logger.warning("cannot remove the work directory %s: %s", path, error)
    finally:
        os.close(top)


def exceeds(path: str, size: int, entries: int, depth: int = 200) -> bool:
    """Whether a directory holds more than ``size`` bytes on disk, or entries, or levels.

    The caps bound the work, too. Links are not followed; what vanishes meanwhile is not counted.
    """
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    opened = [top]
    waiting = [(0, ".")]
    try:
        while waiting:
            level, name = waiting.pop()
            if level > depth:
                return True
            while len(opened) > level + 1:
                os.close(opened.pop())
            if (directory := _open_below(opened[level], name)) is None:
                continue
            opened.append(directory)
            for stated, directories in _look(directory):
                size, entries = size - stated, entries - 1
                waiting += [(level + 1, found) for found in directories]
                if size < 0 or entries < 0:
                    return True
        return False
    finally:
        for handle in opened:
            os.close(handle)


def _open_below(parent: int, name: str) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError:
        return None


def _look(directory: int) -> Iterator[tuple[int, list[str]]]:
    """Bytes on disk of each entry, and its name where it is a directory."""
    with os.scandir(directory) as found:
        for entry in found:
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            is_directory = stat.S_ISDIR(info.st_mode)
            yield info.st_blocks * 512, [entry.name] if is_directory else []


def _empty(top: int) -> None:
    moved = 0
    pending = _unlink_files(top)
    while pending:
        name = pending.pop()
        directory = _open_directory(top, name)
        try:
            for child in _unlink_files(directory):
                moved += 1
                new_name = f".moved-{moved}"
                while new_name in pending or _exists(top, new_name):
                    moved += 1
                    new_name = f".moved-{moved}"
                os.chmod(child, 0o700, dir_fd=directory)
                os.rename(child, new_name, src_dir_fd=directory, dst_dir_fd=top)
                pending.append(new_name)
        finally:
            os.close(directory)
        os.rmdir(name, dir_fd=top)


def _unlink_files(directory: int) -> list[str]:
    """Unlink all but directories; return the directories' names."""
    directories = []
    for name in os.listdir(directory):
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            directories.append(name)
        else:
            os.unlink(name, dir_fd=directory)
    return directories


def _open_directory(top: int, name: str) -> int:
    os.chmod(name, 0o700, dir_fd=top)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)


def _exists(directory: int | None, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
