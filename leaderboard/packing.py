"""Rows, figures and tests as JSON, and back to what they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from grading.engine.outcome import Outcome
from leaderboard.figures import Figures
from leaderboard.ranking import Standings
from leaderboard.rows import Integrity, Row
from leaderboard.statistics import Interval


def facts_of(row: Row) -> dict[str, Any]:
    """JSON-ready: what is known of a run besides its figures; `row_from` takes it back."""
    return {
        "benchmark": row.benchmark,
        "benchmark_slug": row.benchmark_slug,
        "version": row.version,
        "model": row.model,
        "model_slug": row.model_slug,
        "organisation": row.organisation,
        "synthetic": row.synthetic,
        "public_id": row.public_id,
        "state": row.state,
        "private": row.private,
        "settings": row.settings,
        "created_at": row.created_at.isoformat(),
        "finished_at": row.finished_at and row.finished_at.isoformat(),
        "sample_count": row.sample_count,
        "extraction": row.extraction,
        "prefix": row.prefix,
        "integrity": {
            "sealed": row.integrity.sealed,
            "targets": row.integrity.targets,
            "tiers": list(row.integrity.tiers),
            "hardening": list(row.integrity.hardening),
        },
    }


def row_from(facts: Mapping[str, Any], figures: Figures) -> Row:
    held = dict(facts)
    integrity = held.pop("integrity")
    finished = held.pop("finished_at")
    return Row(
        **{
            **held,
            "created_at": datetime.fromisoformat(held["created_at"]),
            "finished_at": datetime.fromisoformat(finished) if finished else None,
        },
        figures=figures,
        integrity=Integrity(
            integrity["sealed"],
            integrity["targets"],
            tuple(integrity["tiers"]),
            tuple(integrity["hardening"]),
        ),
    )


def pack_figures(held: Figures) -> dict[str, Any]:
    return asdict(held) | {
        "outcomes": {outcome.value: n for outcome, n in held.outcomes.items()},
    }


def figures_from(packed: Mapping[str, Any]) -> Figures:
    return Figures(
        **{
            **packed,
            "pass_at": _by_k(packed["pass_at"]),
            "short": _by_k(packed["short"]),
            "intervals": {
                k: Interval(**ends) if ends else None
                for k, ends in _by_k(packed["intervals"]).items()
            },
            "outcomes": {outcome: packed["outcomes"][outcome.value] for outcome in Outcome},
        }
    )


def pack_standings(held: Standings) -> dict[str, Any]:
    """Pairs that differ by the places of their names."""
    places = {name: place for place, name in enumerate(held.names)}
    return {
        "names": list(held.names),
        "adjusted": [float(f"{p:.6g}") for p in held.adjusted],
        "better": sorted([places[winner], places[loser]] for winner, loser in held.better),
        "smallest": held.smallest,
    }


def standings_from(packed: Mapping[str, Any]) -> Standings:
    names = tuple(packed["names"])
    return Standings(
        names,
        tuple(packed["adjusted"]),
        frozenset((names[winner], names[loser]) for winner, loser in packed["better"]),
        packed["smallest"],
    )


def _by_k(packed: Mapping[str, Any]) -> dict[int, Any]:
    """JSON's keys are text."""
    return {int(k): value for k, value in packed.items()}
