"""Tasks that come with unittest classes as task records: ClassEval and BigCodeBench.

Du et al. 2023, "ClassEval: A Manually-Crafted Benchmark for Evaluating LLMs on Class-level Code
Generation"; Zhuo et al. 2024, "BigCodeBench: Benchmarking Code Generation with Diverse Function
Calls and Complex Instructions". The test classes are set-up code, so they run in the judge, and
each test method is one target, inherited ones too: ``run_test(TestAdd, 'test_one')``. A method
that is always skipped is no target.
"""

from __future__ import annotations

import ast

from grading.engine import source
from grading.engine.conversion import BadRow, Row, record_row, require

CLASSEVAL = frozenset({"task_id", "skeleton", "solution_code", "test", "class_name"})
BIGCODEBENCH = frozenset(
    {"task_id", "complete_prompt", "canonical_solution", "test", "entry_point"}
)
Function = ast.FunctionDef | ast.AsyncFunctionDef
CASES = frozenset({"TestCase", "IsolatedAsyncioTestCase"})

RUNNER = '''\
def run_test(case, name):
    """Run one test method with the fixtures of its class; raise what it raised."""
    import unittest
    raised, held = [], []
    result = unittest.TestResult()
    result.addSuccess = held.append
    result.addExpectedFailure = lambda test, problem: held.append(test)
    result.addError = result.addFailure = lambda test, problem: raised.append(problem[1])
    result.addSubTest = lambda test, part, problem: problem and raised.append(problem[1])
    before = [(cls, dict(vars(cls))) for cls in case.__mro__ if cls.__module__ == case.__module__]
    unittest.TestSuite([case(name)]).run(result)
    for cls, content in before:
        for key in set(vars(cls)) - set(content):
            delattr(cls, key)
        for key in content:
            if vars(cls)[key] is not content[key]:
                setattr(cls, key, content[key])
    if raised:
        raise raised[0]
    assert held, "the test was skipped, or should have failed and did not"
    return True
'''


def recognises_classeval(row: Row) -> bool:
    return row.keys() >= CLASSEVAL


def recognises_bigcodebench(row: Row) -> bool:
    return row.keys() >= BIGCODEBENCH


def classeval_row(row: Row) -> tuple[Row, list[str]]:
    """Raises `BadRow`."""
    task_id = _task_id(row)
    require(row, task_id, skeleton=str, solution_code=str, test=str, class_name=str)
    setup, targets, dropped = _cut(row["test"], task_id)
    return record_row(
        task_id,
        row["skeleton"],
        targets,
        entry_point=row["class_name"],
        setup=setup,
        reference=row["solution_code"],
    ), dropped


def bigcodebench_row(row: Row) -> tuple[Row, list[str]]:
    """The prompt is the one to be completed; the instruction is kept. Raises `BadRow`."""
    task_id = _task_id(row)
    require(row, task_id, complete_prompt=str, canonical_solution=str, test=str, entry_point=str)
    setup, targets, dropped = _cut(row["test"], task_id)
    return record_row(
        task_id,
        row["complete_prompt"],
        targets,
        entry_point=row["entry_point"],
        setup=setup,
        reference=row["complete_prompt"] + row["canonical_solution"],
        libs=row.get("libs"),
        instruct_prompt=row.get("instruct_prompt"),
    ), dropped


def _task_id(row: Row) -> str:
    require(row, "", task_id=str)
    return str(row["task_id"])


def _cut(test: str, task_id: str) -> tuple[str, list[str], list[str]]:
    """(set-up, targets, targets that are always skipped) of a test module."""
    tree = source.parse_or_error(test)
    if isinstance(tree, Exception):
        raise BadRow(task_id, "test", "does not compile", str(tree))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    targets: list[str] = []
    dropped: list[str] = []
    for name in classes:
        if _is_case(name, classes):
            for method, skipped in _methods(name, classes).items():
                (dropped if skipped else targets).append(f"run_test({name}, {method!r})")
    if not targets:
        raise BadRow(task_id, "test", "no targets", "no test method that is not skipped")
    kept = [_text(test, node) for node in tree.body if not _starts_tests(node)]
    return "\n".join([*kept, RUNNER]), targets, dropped


def _is_case(name: str, classes: dict[str, ast.ClassDef], depth: int = 0) -> bool:
    """Whether a class is derived from one of unittest's, over others of the module."""
    return depth <= len(classes) and any(
        base in CASES or (base in classes and _is_case(base, classes, depth + 1))
        for base in _bases(classes[name])
    )


def _methods(name: str, classes: dict[str, ast.ClassDef], depth: int = 0) -> dict[str, bool]:
    """Test methods in order of definition, those of bases first; whether each is skipped."""
    node = classes[name]
    found: dict[str, bool] = {}
    for base in reversed(_bases(node)):
        if base in classes and depth < len(classes):
            found |= _methods(base, classes, depth + 1)
    functions = [part for part in node.body if isinstance(part, Function)]
    found |= {part.name: _is_skipped(part) for part in functions if part.name.startswith("test")}
    if _is_skipped(node):
        found = dict.fromkeys(found, True)
    return found


def _bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base).rpartition(".")[2] for base in node.bases]


def _is_skipped(node: ast.ClassDef | Function) -> bool:
    """Always: a condition is looked at when the test runs."""
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(called) in ("unittest.skip", "skip"):
            return True
    return False


def _starts_tests(node: ast.stmt) -> bool:
    """``if __name__ == "__main__": ...`` or ``unittest.main()``."""
    if isinstance(node, ast.If):
        return any(_reads_main(part) for part in ast.walk(node.test))
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) in ("unittest.main", "main")


def _reads_main(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "__name__"


def _text(test: str, node: ast.stmt) -> str:
    lines = test.split("\n")
    return "\n".join(lines[_first_line(node) - 1 : node.end_lineno])


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
