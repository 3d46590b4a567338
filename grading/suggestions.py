"""What to think of a group of failures, from how they are spread. Pure; never more than a hint."""

from __future__ import annotations

from dataclasses import dataclass

from grading.flags import DOUBTS, FLAGS

# Smaller groups say nothing about what their failures have in common.
FEW = 5
FEW_MODELS = 3
MOST = 0.8
ALL_BUT = 0.9
# What hosts, not programs, do most of the time.
HOSTS_DOING = {"signal SIGKILL", "signal SIGBUS", "signal SIGSYS"}
HOSTS_WORDS = ("work directory full", "judge ended")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Counts over the samples of a group.

    ``near``: miss only the group's target; ``passes``: samples of the same tasks that pass;
    ``reference``: ``passes``, ``misses`` (this very target), ``fails`` (otherwise) or empty where
    there is none; ``flags`` of its tasks, by the task audit; ``worker`` and ``model``: (name,
    samples) of the most frequent one, out of ``workers`` and ``graded_models`` that graded or took
    part.
    """

    kind: str
    title: str
    samples: int
    models: int
    near: int = 0
    passes: int = 0
    starved: int = 0
    reference: str = ""
    flags: frozenset[str] = frozenset()
    worker: tuple[str, int] = ("", 0)
    workers: int = 0
    model: tuple[str, int] = ("", 0)
    graded_models: int = 0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """``state`` is a state of a group, ``word`` how the queue tells it, ``reason`` a sentence."""

    state: str
    word: str
    reason: str


def suggest(evidence: Evidence) -> Suggestion | None:
    """The strongest hint there is, or None."""
    return _of_the_platform(evidence) or _of_the_task(evidence) or _of_a_model(evidence)


def _of_the_platform(found: Evidence) -> Suggestion | None:
    reason = ""
    name, held = found.worker
    if found.kind == "platform":
        reason = "The platform failed, not the programs. These samples have no score."
    elif any(word in found.title for word in HOSTS_DOING):
        reason = "Programs rarely end by this signal; hosts do end them so, as when memory is out."
    elif found.kind == "ended" and any(word in found.title for word in HOSTS_WORDS):
        reason = "What ended is on the platform's side of the sandbox."
    elif found.kind == "timeout" and found.starved > MOST * found.samples:
        reason = "The programs waited for a core most of the time."
    elif found.workers > 1 and found.samples >= 2 * FEW and held > ALL_BUT * found.samples:
        reason = f"{held} of {found.samples} ran on {name}; {found.workers} workers graded."
    return Suggestion("grader_bug", "platform?", reason) if reason else None


def _of_the_task(found: Evidence) -> Suggestion | None:
    if found.kind not in DOUBTS:
        return None
    if found.reference == "misses":
        return _bug("The reference solution misses this target too.")
    if found.reference == "fails":
        return _bug("The reference solution does not pass this task.")
    whole = found.near + found.passes
    if found.near >= FEW and found.models >= FEW_MODELS and found.near >= MOST * whole:
        share = f"{found.near} of the {whole} samples that meet every other target miss this one"
        return _bug(f"{share}, by {found.models} models.")
    for flag in DOUBTS[found.kind]:
        if flag in found.flags:
            return _bug(f"The task audit flags the task as {flag}: {FLAGS[flag]}.")
    return None


def _bug(reason: str) -> Suggestion:
    return Suggestion("grader_bug", "grader bug?", reason)


def _of_a_model(found: Evidence) -> Suggestion | None:
    name, held = found.model
    if found.samples < FEW or found.graded_models < FEW_MODELS or held <= ALL_BUT * found.samples:
        return None
    reason = f"{held} of {found.samples} are {name}'s; {found.graded_models} models were graded."
    return Suggestion("known_model_failure", "model habit?", reason)
