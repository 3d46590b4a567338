"""Generated forgeries: programs that solve nothing and try to pass.

Each is a wrong solution of one of a few tasks with one or more tricks, drawn from a seed. No value
they return can be right for all targets of their task, so a pass is a forged one. The same
programs are given to the product's grader and to one that does what many do: program and targets
in one fresh interpreter, results as JSON on a pipe.
"""

from __future__ import annotations

import json
import multiprocessing
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from grading.engine.grade import grade
from grading.engine.outcome import Outcome
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Task
from tests.attacks import fake_host

FULL = 2_000
SEED = 20_261_129
MUST_FORGE = 500


@dataclass(frozen=True, slots=True)
class Problem:
    """A task to be forged. ``wrong``: expressions of the right type that are wrong somewhere."""

    entry: str
    parameters: str
    targets: tuple[str, ...]
    wrong: tuple[str, ...]
    setup: str = ""


PROBLEMS = [
    Problem(
        "add",
        "a, b",
        ("add(1, 2) == 3", "add(-5, 6) == 1", "add(100, 23) == 123"),
        ("0", "a - b", "3"),
    ),
    Problem(
        "add",
        "a, b",
        ("check(add) is None",),
        ("0", "a - b", "None"),
        setup="def check(candidate):\n"
        "    assert candidate(1, 2) == 3\n"
        "    assert candidate(5, 7) == 12\n",
    ),
    Problem(
        "is_even",
        "n",
        ("is_even(2)", "not is_even(3)", "is_even(10) == True", "is_even(7) == False"),
        ("True", "False", "n"),
    ),
    Problem(
        "is_even",
        "n",
        ("all(map(is_even, [2, 4, 8]))", "not any(map(is_even, [1, 3]))"),
        ("True", "False", "None"),
    ),
    Problem(
        "mean",
        "xs",
        ("abs(mean([1.0, 2.0]) - 1.5) < 1e-6", "abs(mean([4.0]) - 4.0) < 1e-6"),
        ("0.0", "xs[0] - 1", "float('nan')"),
    ),
    Problem(
        "half",
        "x",
        ("__import__('math').isclose(half(3), 1.5)", "__import__('math').isclose(half(5), 2.5)"),
        ("0.0", "x", "-1.5"),
    ),
    Problem(
        "evens",
        "xs",
        ("evens([1, 2, 3, 4]) == [2, 4]", "evens([6, 7, 8]) == [6, 8]", "len(evens([2] * 8)) == 8"),
        ("[]", "xs", "[2]"),
    ),
    Problem(
        "dedupe",
        "xs",
        (
            "(lambda xs: dedupe(xs) == sorted(set(xs)))([3, 1, 3])",
            "(lambda xs: dedupe(xs) == sorted(set(xs)))([2, 2, 0])",
        ),
        ("[]", "list(xs)", "xs"),
    ),
    Problem(
        "squares",
        "xs",
        ("[1, 4] == squares(DATA)", "sorted(squares(DATA)) == [x * x for x in DATA]"),
        ("[]", "xs", "[0]"),
        setup="DATA = [1, 2]",
    ),
    Problem(
        "greet",
        "name",
        ("greet('Ann') == 'Hello Ann'", "greet('Bo').endswith('Bo') and len(greet('Bo')) == 8"),
        ("''", "'Hello'", "name[:1]"),
    ),
    Problem(
        "count",
        "text",
        ("count('aab') == {'a': 2, 'b': 1}", "count('c')['c'] == 1", "'d' in count('d')"),
        ("{}", "{'a': 0}", "dict(x=1)"),
    ),
    Problem(
        "corner",
        "n",
        ("corner(1) == (1, 2)", "corner(2)[1] == 4", "corner(3) == (3, 6) and corner(0)[0] == 0"),
        ("()", "(0, 0)", "(n, n + 5)"),
    ),
    Problem(
        "twice",
        "function, x",
        ("twice(lambda x: x + 3, 1) == 7", "twice(lambda s: s + 'ab', '') == 'abab'"),
        ("x", "function(x)", "None"),
    ),
    Problem(
        "positive",
        "n",
        (
            "assert positive(3) == 3\n"
            "try:\n    positive(-1)\nexcept ValueError as e:\n    assert str(e) == 'negative -1'\n"
            "else:\n    assert False",
        ),
        ("n", "0", "abs(n)"),
    ),
]

# --- lying objects --------------------------------------------------------------------------------

COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__")
ARITHMETIC = ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__abs__", "__neg__")
CONVERSIONS = ("__bool__", "__len__", "__hash__", "__index__", "__int__", "__float__", "__str__")
CONVERSIONS += ("__repr__", "__iter__", "__next__", "__getitem__", "__call__", "__missing__")
HOOKS = ("__getattr__", "__class_getitem__", "__instancecheck__", "__reduce__", "__sizeof__")
HOOKS += ("__format__", "__reversed__", "__length_hint__", "__eq__", "__set_name__", "__copy__")
ANYTHING = (
    *("True", "False", "None", "0", "1", "3", "-1", "2.5", "''", "'x'", "[]", "(1, 2)", "{}"),
    *("self", "a[0] if a else self", "NotImplemented", "iter([self])", "iter(())", "type(self)"),
    *("(_ for _ in ()).throw(StopIteration)", "lambda *b, **c: True", "object()", "int", "..."),
)
LIKELY = {
    "__eq__": "True",
    "__lt__": "True",
    "__bool__": "True",
    "__sub__": "self",
    "__abs__": "self",
    "__hash__": "0",
    "__len__": "8",
    "__contains__": "True",
    "__getitem__": "self",
    "__getattr__": "lambda *b, **c: True",
    "__iter__": "iter([self, self])",
}
BASES = {
    "object": "Liar()",
    "int": "Liar(7)",
    "str": "Liar('no')",
    "list": "Liar([9])",
    "dict": "Liar(z=0)",
    "tuple": "Liar((9, 9, 9))",
    "float": "Liar(-8.5)",
    "bytes": "Liar(b'no')",
    "set": "Liar({9})",
    "frozenset": "Liar({9})",
    "BaseException": "Liar(9)",
    "__import__('collections').OrderedDict": "Liar(z=0)",
    "__import__('collections').Counter": "Liar('zz')",
    "__import__('decimal').Decimal": "Liar('-8.5')",
    "__import__('fractions').Fraction": "Liar(-17, 2)",
}


class Draw:
    """A problem, and the random choices of one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.problem = self.random.choice(PROBLEMS)

    def one(self, options: Iterable[str]) -> str:
        return self.random.choice(list(options))

    def wrong(self) -> str:
        return self.one(self.problem.wrong)

    def function(self, body: str, indent: str = "") -> str:
        lines = [f"def {self.problem.entry}({self.problem.parameters}):"]
        lines += ["    " + line for line in body.splitlines()]
        return "\n".join(indent + line for line in lines) + "\n"

    def dunders(self) -> str:
        names = {"__eq__", "__hash__"}
        pool = [*COMPARISONS, *ARITHMETIC, *CONVERSIONS, *HOOKS]
        names |= set(self.random.sample(pool, self.random.randint(1, 12)))
        if self.random.random() < 0.8:
            names |= set(LIKELY)
        lines = []
        for name in sorted(names):
            sure = name in LIKELY and self.random.random() < 0.95
            value = LIKELY[name] if sure else self.one(ANYTHING)
            lines.append(f"    def {name}(self, *a, **k): return {value}")
        return "\n".join(lines) + "\n"

    def liar(self) -> tuple[str, str]:
        """(class definition, expression that makes an instance)."""
        base = "object" if self.random.random() < 0.5 else self.one(BASES)
        meta = ""
        text = ""
        if self.random.random() < 0.2:
            text = "class Meta(type):\n" + self.dunders()
            meta = ", metaclass=Meta"
        text += f"class Liar({base}{meta}):\n" + self.dunders()
        if self.random.random() < 0.3:
            text += f"    __class__ = {self.one(('int', 'list', 'str', 'bool', 'float', 'dict'))}\n"
        return text, BASES[base]


def lying_object(draw: Draw) -> str:
    text, made = draw.liar()
    shape = draw.one((*["{}"] * 8, "[{}]", "[{0}, {0}]", "({}, {})", "{{'a': {}}}", "iter([{}])"))
    return text + draw.function("return " + shape.format(made, made))


def lying_class_as_value(draw: Draw) -> str:
    text, _ = draw.liar()
    return text + draw.function("return Liar")


def enum_trick(draw: Draw) -> str:
    base = draw.one(("enum.Enum", "enum.IntEnum", "enum.Flag", "str, enum.Enum"))
    value = "'no'" if "str" in base else "1"
    text = f"import enum\nclass Liar({base}):\n    A = {value}\n" + draw.dunders()
    return text + draw.function("return Liar.A")


def tuple_trick(draw: Draw) -> str:
    text = "from collections import namedtuple\n"
    fields = draw.one(("x y", "count index", "a b c", "x"))
    made = f"Liar({', '.join(['9'] * len(fields.split()))})"
    text += f"class Liar(namedtuple('Pair', {fields!r})):\n" + draw.dunders()
    return text + draw.function(f"return {made}")


def dataclass_trick(draw: Draw) -> str:
    text = "from dataclasses import dataclass\n@dataclass(eq=False)\nclass Liar:\n    a: int = 1\n"
    return text + draw.dunders() + draw.function("return Liar()")


def iterator_trick(draw: Draw) -> str:
    lies = draw.one(("iter(int, 1)", "(n for n in range(10 ** 9))", "map(str, [])", "zip()"))
    if draw.random.random() < 0.5:
        text, made = draw.liar()
        return text + draw.function(f"yield {made}\nyield {draw.wrong()}")
    return draw.function(f"return {lies}")


def early_exit(draw: Draw) -> str:
    way = draw.one(
        (
            "import os; os._exit(0)",
            "import sys; sys.exit(0)",
            "raise SystemExit(0)",
            "import os; os.kill(os.getpid(), 15)",
            "raise KeyboardInterrupt",
            "import posix; posix._exit(0)",
            "raise GeneratorExit",
        )
    )
    place = draw.one(("import", "call", "atexit", "del", "after one"))
    if place == "import":
        return way + "\n" + draw.function("return " + draw.wrong())
    if place == "call":
        return draw.function(way)
    if place == "atexit":
        hook = f"import atexit\n@atexit.register\ndef leave():\n    {way}\n"
        return hook + draw.function("return " + draw.wrong())
    if place == "del":
        text = f"class Last:\n    def __del__(self):\n        {way}\nkeep = Last()\n"
        return text + draw.function(f"global keep\nkeep = None\nreturn {draw.wrong()}")
    text = "calls = 0\n"
    return text + draw.function(f"global calls\ncalls += 1\nif calls > 1:\n    {way}\nreturn 3")


def forged_reports(draw: Draw) -> list[str]:
    n = len(draw.problem.targets)
    return [
        json.dumps({"results": [True] * n}),
        json.dumps({"results": [True] * n, "passed": n, "total": n, "score": 1.0, "ok": True}),
        json.dumps([True] * n),
        json.dumps({"true": True, "label": "sealed", "detail": "", "index": 0}),
        json.dumps(["v", 3, [], []]),
        json.dumps({"token": "0" * 32, "failure": None, "names": [["add", "f"]], "denied": []}),
        "PASSED",
        "1",
    ]


def frames_everywhere(draw: Draw) -> str:
    reports = forged_reports(draw)
    report = draw.one(reports[:2] if draw.random.random() < 0.8 else reports)
    kind = draw.one("TREDQACU")
    framed = draw.one(
        (
            *["data"] * 20,
            "data + b'\\n'",
            "len(data).to_bytes(4, 'big') + data",
            f"b'{kind}' + bytes(8) + len(data).to_bytes(4, 'big') + data",
            f"b'{kind}' + os.urandom(8) + len(data).to_bytes(4, 'big') + data",
            "os.urandom(64)",
        )
    )
    start, stop = draw.one(("0, 64", "3, 64", "3, 64", "1, 3", "40, 42")).split(", ")
    ending = draw.one(("os._exit(0)", "os._exit(0)", "os._exit(0)", "pass", "os.closerange(0, 64)"))
    text = (
        f"import os\ndata = {report.encode()!r}\n"
        "def forge():\n"
        f"    for fd in range({start}, {stop}):\n"
        "        try:\n"
        "            os.set_blocking(fd, False)\n"
        f"            os.write(fd, {framed})\n"
        "        except OSError:\n            pass\n"
        f"    {ending}\n"
    )
    if draw.random.random() < 0.5:
        return text + "forge()\n" + draw.function("return " + draw.wrong())
    return text + draw.function(f"forge()\nreturn {draw.wrong()}")


def patched_builtins(draw: Draw) -> str:
    names = draw.random.sample(
        ("bool", "all", "eval", "abs", "sorted", "len", "set", "isinstance", "any", "compile"), 4
    )
    true = "lambda *a, **k: True"
    lie = draw.one((true, true, true, "lambda *a, **k: 3", "lambda *a, **k: a[0]"))
    names.append(draw.one(("eval", "bool", "exec")))
    where = draw.one(("builtins", "builtins", "__builtins__"))
    lines = ["import builtins"]
    for name in names:
        if where == "builtins":
            lines.append(f"builtins.{name} = {lie}")
        else:
            put = f"__builtins__[{name!r}] = {lie}"
            lines.append(f"try: {put}\nexcept TypeError: pass")
    return "\n".join(lines) + "\n" + draw.function("return " + draw.wrong())


def patched_library(draw: Draw) -> str:
    n = len(draw.problem.targets)
    good = json.dumps({"results": [True] * n})
    text = draw.one(
        (
            f"import json\njson.dumps = lambda *a, **k: {good!r}\n",
            f"import json\njson.JSONEncoder.encode = lambda *a: {good!r}\n"
            f"json.encoder.encode_basestring_ascii = lambda s: {good!r}\n",
            "import math\nmath.isclose = lambda *a, **k: True\n",
            "import sys\nclass M:\n    def __getattr__(s, n): return lambda *a, **k: True\n"
            "for name in ('math', 'json', 'operator', 'copy'): sys.modules[name] = M()\n",
            f"import os\nreal = os.write\n"
            f"os.write = lambda fd, data: real(fd, {good.encode()!r})\n",
            "import sys\nsys.setrecursionlimit(60)\n",
            "import sys\nsys.setprofile(lambda frame, event, arg: None)\n"
            "sys.settrace(lambda *a: None)\n",
        )
    )
    return text + draw.function("return " + draw.wrong())


def own_helpers(draw: Draw) -> str:
    text = (
        "def check(*a): return None\n"
        "def assert_equal(*a): return None\n"
        "DATA = []\n"
        f"def {draw.one(('sorted', 'abs', 'len', 'set', 'lambda_', 'all', 'isclose'))}"
        f"(*a, **k): return {draw.one(('0', 'True', '[]', 'a[0]', '3'))}\n"
        "class math:\n    isclose = staticmethod(lambda *a: True)\n"
        "def __import__(*a): return math\n"
    )
    return text + draw.function("return " + draw.wrong())


def exception_trick(draw: Draw) -> str:
    base = draw.one(
        ("Exception", "AssertionError", "StopIteration", "SystemExit", "ValueError", "KeyError")
    )
    text = (
        f"class Liar({base}):\n"
        f"    args = {draw.one(('(1,)', '()', 'property(lambda s: 1 / 0)', '[True]'))}\n"
        f"    code = 0\n    value = {draw.one(('0', 'True', 'None'))}\n"
        "    def __str__(self): return 'negative -1'\n"
        f"    __class__ = {draw.one(('ValueError', 'int', 'AssertionError'))}\n"
    )
    if draw.random.random() < 0.4:
        return draw.function(f"raise {draw.one(('StopIteration', 'StopIteration(3)', base))}")
    return text + draw.function(f"raise Liar({draw.one(('', '3', 'True'))})")


def frame_reader(draw: Draw) -> str:
    """Looks for what its answer is compared with: in code constants, variables and objects."""
    first = draw.problem.parameters.split(",")[0]
    way = draw.one(("constants", "constants", "variables", "results", "objects", "targets"))
    if way == "targets":
        return (
            "import sys\nframe = sys._getframe(1)\nwhile frame:\n"
            "    for value in [frame.f_locals, *frame.f_locals.values()]:\n"
            "        if isinstance(value, dict) and isinstance(value.get('targets'), list):\n"
            "            value['targets'] = ['True'] * len(value['targets'])\n"
            "    frame = frame.f_back\n"
        ) + draw.function("return " + draw.wrong())
    if way == "constants":
        body = (
            "import sys\nframe = sys._getframe(1)\nwhile frame:\n"
            f"    for value in frame.f_code.co_consts[{draw.one(('::-1', '1:', ':'))}]:\n"
            "        if type(value) in (int, str, tuple, float) and value not in (0, None, 1):\n"
            "            return value\n"
            "    frame = frame.f_back\n"
        )
    elif way == "variables":
        body = (
            "import sys\nframe = sys._getframe(1)\nwhile frame:\n"
            "    for name, value in list(frame.f_locals.items()):\n"
            "        if type(value) is str and '==' in value:\n"
            "            try: return eval(value.split('==')[1])\n"
            "            except Exception: pass\n"
            "    frame = frame.f_back\n"
        )
    elif way == "results":
        body = (
            "import sys\nframe = sys._getframe(1)\nwhile frame:\n"
            "    for value in list(frame.f_locals.values()):\n"
            "        if type(value) is list and len(value) < 50:\n"
            "            if all(type(item) is bool for item in value):\n"
            f"                value[:] = [True] * {len(draw.problem.targets)}\n"
            "        if type(value) is list and value and type(value[0]) is str:\n"
            "            value[:] = ['True'] * len(value)\n"
            "    frame = frame.f_back\n"
        )
    else:
        body = (
            "import gc\nfor value in gc.get_objects():\n"
            "    if type(value) is tuple and value and type(value[0]) is str:\n"
            "        if '==' in value[0] and len(value[0]) < 80:\n"
            "            try: return eval(value[0].split('==')[1])\n"
            "            except Exception: pass\n"
        )
    return draw.function(f"keep = {first}\n{body}return {draw.wrong()}")


def inspecting_callback(draw: Draw) -> str:
    first = draw.problem.parameters.split(",")[0]
    body = (
        "for name in ('__globals__', '__code__', '__closure__', '__defaults__'):\n"
        f"    found = getattr({first}, name, None)\n"
        "    if isinstance(found, dict):\n"
        "        for key, value in list(found.items()):\n"
        f"            if isinstance(value, list): value[:] = [True] * {len(draw.problem.targets)}\n"
        "            if key == '__builtins__' and isinstance(value, dict):\n"
        "                value['eval'] = value['bool'] = lambda *a, **k: True\n"
    )
    return draw.function(f"{body}return {draw.wrong()}")


def changed_arguments(draw: Draw) -> str:
    first = draw.problem.parameters.split(",")[0]
    change = draw.one(
        (
            "clear()",
            "extend([1])",
            "__init__([])",
            "__setitem__(slice(None), [])",
            "append(sys)",
            "sort()",
        )
    )
    body = f"import sys\ntry: {first}.{change}\nexcept Exception: pass\n"
    return draw.function(f"{body}return {draw.one(('[]', first, draw.wrong()))}")


REPLIES = """
import gc, json, os, random
r = random.Random(SEED)
TAGS = ('list set dict bytearray OrderedDict Counter defaultdict deque int float complex bytes'
        ' tuple frozenset range view type const Decimal Fraction datetime date time timedelta'
        ' timezone ref handle program callback steps namedtuple tuple_of enum member sub object'
        ' class function iterator generator coroutine nothing ndarray npscalar npdtype nptype'
        ' Series DataFrame Index column Timestamp Timedelta Period Interval missing').split()
LEAVES = [0, 1, -1, 3, '3', 'ENTRY', 'ValueError', 'BaseException', 'StopIteration', 'nan',
          '0x3', 'math.nan', None, True, False, [], ['x'], {}, 'keys', 'count', '__eq__',
          10 ** 9, '1e999999', '<f8', ['numbers', 'Number'], ['__len__', '__getitem__']]
def node(depth):
    if depth <= 0 or r.random() < .3:
        return r.choice(LEAVES)
    return [r.choice(TAGS), *(node(depth - 1) for _ in range(r.randint(0, 5)))]
def changes():
    count = r.choice([0, 0, 1, 2])
    return [[r.choice([0, 0, 1, -1, 'a']), [node(2), node(2)]] for _ in range(count)]
def reply():
    odd = r.choice([[], [], ['x'], 'x', None, 5, [5]])
    if r.random() < .8:
        return ['v', node(4), changes(), odd, r.choice([[], odd])]
    if r.random() < .6:
        keys = 'exception base class origin args message denied phase frames'.split()
        return ['x', {key: r.choice([*LEAVES, [node(2)]]) for key in keys}, changes(), odd, []]
    return r.choice([['big', [], []], ['big'], [], {}, None, 5, ['v'], ['v', 3], 'v'])
def ENTRY(*arguments):
    for cell in gc.get_objects():
        if type(cell).__name__ == 'Cell':
            ident = cell.request_id
            while True:
                kind, value = b'R', reply()
                if r.random() < .07:
                    kind, value = b'C', [r.choice([0, 1, -1, 'a']), ['tuple', node(2)], ['dict', 0]]
                data = json.dumps(value).encode()
                os.write(cell.sink, kind + ident + len(data).to_bytes(4, 'big') + data)
                ident = os.read(cell.source, 65536)[1:9]
"""


def own_replies(draw: Draw) -> str:
    """Takes over the channel and answers with anything that has the form of an answer, or not."""
    seed = str(draw.random.randrange(10**6))
    return REPLIES.replace("SEED", seed).replace("ENTRY", draw.problem.entry)


TRICKS: list[tuple[int, Callable[[Draw], str]]] = [
    (9, lying_object),
    (1, lying_class_as_value),
    (2, enum_trick),
    (2, tuple_trick),
    (2, dataclass_trick),
    (1, iterator_trick),
    (1, early_exit),
    (4, frames_everywhere),
    (4, patched_builtins),
    (2, patched_library),
    (2, own_helpers),
    (2, exception_trick),
    (3, frame_reader),
    (1, inspecting_callback),
    (2, changed_arguments),
    (3, own_replies),
]


@dataclass(frozen=True, slots=True)
class Forgery:
    seed: int
    trick: str
    program: str
    problem: Problem

    def task(self) -> Task:
        problem = self.problem
        return Task(
            task_id=f"forgery-{self.seed}",
            targets=problem.targets,
            setup=problem.setup,
            entry_points=(problem.entry,),
        )


def generate(count: int, seed: int = SEED) -> list[Forgery]:
    """``count`` programs; the same for the same seed."""
    return [_forgery(seed + number) for number in range(count)]


def _forgery(seed: int) -> Forgery:
    draw = Draw(seed)
    weights = [weight for weight, _ in TRICKS]
    trick = draw.random.choices([make for _, make in TRICKS], weights)[0]
    text = trick(draw)
    if draw.random.random() < 0.15:
        # A second trick whose function is replaced by the first's.
        text = draw.random.choices([make for _, make in TRICKS], weights)[0](draw) + text
    return Forgery(seed, trick.__name__, text, draw.problem)


@dataclass(slots=True)
class Tally:
    """How many of the same forgeries pass each grader."""

    attempts: int
    tier: str = ""
    sealed: list[Forgery] = field(default_factory=list)
    in_process: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        forged = sum(self.in_process.values())
        ways = ", ".join(f"{name} {n}" for name, n in self.in_process.most_common())
        outcomes = ", ".join(f"{name} {n}" for name, n in self.outcomes.most_common())
        return (
            f"generated forgeries: {self.attempts} programs; {len(self.sealed)} pass sealed on "
            f"{self.tier} ({outcomes}); {forged} pass in-process ({ways})"
        )

    def problems(self) -> list[str]:
        """Sealed passes, and too few in-process ones for the programs to mean anything."""
        found = [f"forgery {one.seed} ({one.trick}) passes" for one in self.sealed]
        # A small part of them may by chance be weaker than the whole.
        needed = MUST_FORGE * self.attempts / FULL * (1.0 if self.attempts >= FULL else 0.8)
        if sum(self.in_process.values()) < needed:
            found.append("the forgeries are too weak: few pass even an in-process grader")
        return found


def run(count: int, workers: int, tier: str = "auto") -> Tally:
    """Give the first ``count`` forgeries to both graders."""
    made = generate(count)
    tally = Tally(count)
    sandbox = Sandbox("forgeries", isolation=tier)
    sandbox.ensure()
    tally.tier = "+".join([sandbox.tier, *sandbox.hardening])
    with multiprocessing.get_context("fork").Pool(workers, _keep, (sandbox,)) as pool:
        for one, outcome in zip(made, pool.imap(_outcome, made, chunksize=4), strict=True):
            tally.outcomes[outcome] += 1
            if outcome == Outcome.PASS:
                tally.sealed.append(one)
    for one, passed in zip(made, in_process(made), strict=True):
        if passed:
            tally.in_process[one.trick] += 1
    return tally


_sandbox: Sandbox


def _keep(sandbox: Sandbox) -> None:
    global _sandbox
    _sandbox = sandbox


def _outcome(forgery: Forgery) -> str:
    return grade(forgery.task(), Generation(forgery.program), _sandbox).outcome.value


def in_process(forgeries: list[Forgery]) -> list[bool]:
    """Which ones pass a grader that shares its interpreter with them; in a throw-away host."""
    rows: list[dict[str, Any]] = [
        {
            "program": one.program,
            "setup": one.problem.setup,
            "targets": list(one.problem.targets),
        }
        for one in forgeries
    ]
    return json.loads(fake_host.inside("in_process.py", json.dumps(rows)))
