#!/usr/bin/env python3
"""Send generations to an Evalsite and read what came of them. Needs Python 3.8 and nothing else.

    export EVALSITE_TOKEN=evs_...        made on the site, under API tokens
    python3 evalsite.py submit samples.jsonl --benchmark humaneval --model "My model" --wait
    python3 evalsite.py submit more.jsonl --add-to ID --wait
    python3 evalsite.py status ID
    python3 evalsite.py results ID --outcome timeout
    python3 evalsite.py repro SAMPLE > case.jsonl
    python3 evalsite.py cancel ID

Exit codes: 0 done; 1 the score is below --fail-under; 2 the request or the file is wrong, or the
submission was cancelled; 3 the site or the network failed, or the platform could not grade every
sample; 4 --timeout passed.
The reason is always printed to standard error.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Dict

    Options = argparse.Namespace
    Answer = Dict[str, Any]

# Filled in by the site that hands this file out.
SITE = ""

OK, BELOW, WRONG, FAILED, TOO_LATE = range(5)
TRIES = 5
RETRY_S = 2
LONGEST_PAUSE_S = 30
CALL_TIMEOUT_S = 300


class Stop(Exception):
    """The command ends here: exit code and reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        return code
    except Stop as stop:
        tell(str(stop))
        return stop.code
    except BrokenPipeError:
        # Whoever read the output has enough of it; what is left in the buffer goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (OSError, http.client.HTTPException) as problem:
        tell(f"the answer broke off: {problem or type(problem).__name__}")
        return FAILED
    except KeyboardInterrupt:
        tell("interrupted; grading goes on at the site")
        return FAILED


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--url", default=os.environ.get("EVALSITE_URL") or SITE, help="the site")
    commands = top.add_subparsers(dest="command", required=True)

    submit = commands.add_parser("submit", help="send a file of generations")
    submit.set_defaults(run=run_submit)
    submit.add_argument("file")
    submit.add_argument("--benchmark", "-b")
    submit.add_argument("--model", "-m")
    submit.add_argument("--add-to", metavar="ID", help="add the samples to a submission of yours")
    submit.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE")
    submit.add_argument("--private", action="store_true", help="seen by you and staff only")
    submit.add_argument("--good-lines-only", action="store_true", help="leave bad lines out")
    submit.add_argument("--text-field", default="", metavar="NAME", help="instead of detecting")
    submit.add_argument("--reading", default="", choices=["", "generation", "completion"])
    submit.add_argument("--match", default="", choices=["", "id", "number", "prompt", "position"])
    submit.add_argument("--dry-run", action="store_true", help="check the file, store nothing")
    submit.add_argument("--wait", action="store_true", help="until everything is graded")
    submit.add_argument("--timeout", default="60m", help="of --wait: 90s, 30m, 2h (60m)")
    submit.add_argument("--fail-under", type=float, metavar="SCORE", help="needs --wait")
    submit.add_argument("--score", default="1", help="k of the pass@k that --fail-under means")

    status = commands.add_parser("status", help="where a submission stands, as JSON")
    status.set_defaults(run=run_status)
    status.add_argument("id")

    results = commands.add_parser("results", help="verdicts, one JSON line per sample")
    results.set_defaults(run=run_results)
    results.add_argument("id")
    results.add_argument("--outcome", default="")

    repro = commands.add_parser("repro", help="a line to run one sample again by")
    repro.set_defaults(run=run_repro)
    repro.add_argument(
        "sample",
        nargs="+",
        metavar="SAMPLE",
        help="address of its page, or its end: ID/HumanEval-0/3, or the three apart",
    )

    cancel = commands.add_parser("cancel", help="stop grading; what is graded stays")
    cancel.set_defaults(run=run_cancel)
    cancel.add_argument("id")
    return top


# --- commands -------------------------------------------------------------------------------------


def run_submit(options: Options) -> int:
    if options.fail_under is not None and not options.wait:
        raise Stop(WRONG, "--fail-under needs --wait")
    wait_s = seconds(options.timeout)
    answer = send(options, *destination(options))
    if options.dry_run:
        show(answer)
        return reported(answer)
    tell(f"{answer['url']} ({answer['samples']} samples)")
    if options.wait:
        answer = wait(options, answer["id"], wait_s)
    show(answer)
    return judged(options, answer) if options.wait else OK


def destination(options: Options) -> tuple[str, Answer]:
    """Path and parameters of the call that takes the file."""
    query = {
        "file_name": os.path.basename(options.file),
        "good_lines_only": options.good_lines_only,
        "dry_run": options.dry_run,
        "text_field": options.text_field,
        "reading": options.reading,
        "match": options.match,
    }
    if options.add_to:
        if options.benchmark or options.model or options.setting or options.private:
            raise Stop(
                WRONG, "--add-to keeps benchmark, model, settings and visibility as they are"
            )
        return f"submissions/{quoted(options.add_to)}/samples", query
    if not options.benchmark or not options.model:
        raise Stop(WRONG, "name --benchmark and --model, or a submission by --add-to")
    query["benchmark"] = options.benchmark
    query["model"] = options.model
    query["visibility"] = "private" if options.private else "public"
    query["settings"] = json.dumps(dict(map(setting, options.setting)))
    return "submissions", query


def run_status(options: Options) -> int:
    show(call(options, "GET", f"submissions/{quoted(options.id)}"))
    return OK


def run_results(options: Options) -> int:
    query = urllib.parse.urlencode({"outcome": options.outcome})
    with opened(
        options, "GET", f"submissions/{quoted(options.id)}/results.jsonl?{query}"
    ) as answer:
        for line in answer:
            sys.stdout.write(line.decode("utf-8"))
        if answer.length:
            raise Stop(FAILED, "the answer broke off: there are more verdicts than these")
    return OK


def run_repro(options: Options) -> int:
    public_id, task, index = sample_named(options.sample)
    place = f"{quoted(public_id)}/results/{quoted(task)}/{index}"
    record = call(options, "GET", f"submissions/{place}")
    if "case" not in record:
        raise Stop(WRONG, "the targets of this benchmark are hidden")
    show(record["case"], indent=None)
    tell("run it with: python -m grading.engine --cases case.jsonl --out -")
    return OK


def run_cancel(options: Options) -> int:
    show(call(options, "POST", f"submissions/{quoted(options.id)}/cancel"))
    return OK


def wait(options: Options, public_id: str, wait_s: float) -> Answer:
    """The finished submission; the site says how long to leave between two questions."""
    deadline = time.monotonic() + wait_s
    while True:
        with opened(options, "GET", f"submissions/{quoted(public_id)}") as response:
            answer = read(options, response)
            pause_s = pause_of(response)
        if answer["state"] != "grading":
            return answer
        tell(f"{answer['done']} of {answer['samples']} graded{stopped(answer)}")
        if time.monotonic() + pause_s > deadline:
            raise Stop(TOO_LATE, f"not done within {options.timeout}; see {answer['url']}")
        time.sleep(pause_s)


def reported(report: Answer) -> int:
    """Exit code of a dry run; says what is wrong, or what looks so."""
    for problem in report["problems"]:
        place = f"line {problem['line']}" if problem["line"] else "file"
        tell(f"{place}: {problem['field']} {problem['rule']} {problem['detail']}")
    if not report["ok"]:
        tell(f"{report['problem_count']} problems, {report['samples']} samples usable")
        return WRONG
    if report["too_many_without_code"]:
        tell(
            f"{report['without_code']} of {report['looked_at']} samples looked at hold no Python:"
            " perhaps another --text-field or --reading"
        )
    if report["missing_count"]:
        tell(f"{report['missing_count']} tasks have no sample: the run would take no rank")
    return OK


def judged(options: Options, answer: Answer) -> int:
    """Exit code of a finished submission."""
    if answer["state"] == "cancelled":
        raise Stop(WRONG, "the submission was cancelled")
    if answer["platform_failed"]:
        count = answer["platform_failed"]
        raise Stop(FAILED, f"the platform could not grade {count} samples")
    if options.fail_under is None:
        return OK
    score = answer["pass_at_k"].get(options.score)
    if score is None:
        known = [f"pass@{k}" for k, value in answer["pass_at_k"].items() if value is not None]
        raise Stop(WRONG, f"no pass@{options.score} here, only {', '.join(known) or 'none at all'}")
    if score < options.fail_under:
        raise Stop(BELOW, f"pass@{options.score} is {score:.4f}, below {options.fail_under:g}")
    tell(f"pass@{options.score} is {score:.4f}, at least {options.fail_under:g}")
    return OK


# --- the site -------------------------------------------------------------------------------------


def stopped(answer: Answer) -> str:
    """What an operator says while nothing new is graded."""
    queue = answer.get("queue") or {}
    reason = queue.get("reason")
    return f"; grading is {queue['mode']}: {reason}" if reason else ""


def send(options: Options, path: str, query: Answer) -> Answer:
    """The answer to an upload; the file is read block by block and never held."""
    try:
        size = os.path.getsize(options.file)
        file = open(options.file, "rb")
    except OSError as problem:
        raise Stop(WRONG, f"{options.file}: {problem.strerror}") from None
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
    address = f"{path}?{urllib.parse.urlencode(query)}"
    with file, opened(options, "POST", address, file, headers) as response:
        return read(options, response)


def call(options: Options, method: str, path: str) -> Answer:
    with opened(options, method, path) as response:
        return read(options, response)


def read(options: Options, response: Any) -> Answer:
    try:
        answer: Answer = json.load(response)
    except ValueError:
        raise Stop(FAILED, f"{options.url} answers, but not as an Evalsite does") from None
    return answer


def opened(
    options: Options,
    method: str,
    path: str,
    body: IO[bytes] | None = None,
    headers: dict[str, str] | None = None,
) -> Any:
    """The open response; tried again where the site is not to be reached for a moment."""
    if not (options.url or "").startswith(("http://", "https://")):
        raise Stop(WRONG, f"which site? {options.url!r} is no address; use --url or EVALSITE_URL")
    address = f"{options.url.rstrip('/')}/api/v1/{path}"
    sent = dict(headers or {})
    if os.environ.get("EVALSITE_TOKEN"):
        sent["Authorization"] = f"Bearer {os.environ['EVALSITE_TOKEN']}"
    for left in reversed(range(TRIES)):
        if body is not None:
            body.seek(0)
        request = urllib.request.Request(address, body, sent, method=method)
        try:
            return urllib.request.urlopen(request, timeout=CALL_TIMEOUT_S)
        except urllib.error.HTTPError as problem:
            pause_s = pause_of(problem)
            # A quota may be used up until tomorrow: say so instead.
            if problem.code in (429, 502, 503, 504) and left and pause_s <= LONGEST_PAUSE_S:
                time.sleep(pause_s)
                continue
            raise refused(problem) from None
        except (urllib.error.URLError, OSError) as problem:
            if not left:
                raise Stop(FAILED, f"{options.url}: {problem}") from None
            time.sleep(RETRY_S)


def pause_of(response: Any) -> float:
    """How many seconds the site wants to be left alone."""
    said = response.headers.get("Retry-After") or ""
    return float(said) if said.isdigit() else RETRY_S


def refused(problem: urllib.error.HTTPError) -> Stop:
    """What the site says of a call that it did not carry out."""
    try:
        said = json.loads(problem.read().decode("utf-8", "replace"))
        reason = said.get("detail") or said.get("title") or str(problem)
    except (ValueError, AttributeError):
        reason = str(problem)
    return Stop(FAILED if problem.code >= 500 else WRONG, reason)


# --- small things ---------------------------------------------------------------------------------


def seconds(text: str) -> float:
    units = {"s": 1, "m": 60, "h": 3600}
    try:
        return float(text[:-1]) * units[text[-1:]]
    except (KeyError, ValueError):
        raise Stop(WRONG, f"--timeout {text!r}: use 90s, 30m or 2h") from None


def sample_named(words: list[str]) -> list[str]:
    """Submission, task and number of a sample, from the address of its page or its parts."""
    parts = [part for part in "/".join(words).split("/") if part][-3:]
    if len(parts) < 3 or not parts[2].isdigit():
        raise Stop(WRONG, f"which sample? {' '.join(words)!r} is not ID/TASK/NUMBER")
    return list(map(urllib.parse.unquote, parts))


def setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Stop(WRONG, f"--setting {text!r}: use NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def show(value: Any, indent: int | None = 2) -> None:
    print(json.dumps(value, indent=indent))


def tell(text: str) -> None:
    """To standard error; what a terminal would obey is spelled out."""
    plain = (char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)
    print(f"evalsite: {''.join(plain)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
