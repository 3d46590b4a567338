"""Targets over numpy and pandas, sealed; and programs that try to profit from the two."""

from __future__ import annotations

import textwrap

import pytest

from grading.engine.grade import grade
from grading.engine.outcome import Verdict
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Task

pytestmark = pytest.mark.sandbox

SETUP = "import numpy as np\nimport pandas as pd"


def run(sandbox: Sandbox, program: str, *targets: str, setup: str = SETUP) -> Verdict:
    task = Task(targets=targets, setup=setup, timeout_s=30.0)
    return grade(task, Generation(textwrap.dedent(program)), sandbox)


def answers(verdict: Verdict) -> dict[str, str]:
    """One letter per target, t or f, and one for its label; the detail where it is not true."""
    return {
        str(target.index): ("t" if target.true else "f") + target.label.value[0]
        for target in verdict.targets
    }


PROGRAM = """
    import numpy as np
    import pandas as pd
    def double(a): return a * 2
    def same(x): return x
    def kind(x): return type(x).__module__ + "." + type(x).__name__
    def sort(a): a.sort()
    def sorted_copy(a):
        a.sort()
        return a
    def add_column(frame):
        frame["y"] = frame["x"] * 2
        return frame
    def frame(n): return pd.DataFrame({"x": range(n)})
    def total(series): return series.sum()
    def apply(f, x): return f(x)
    def masked(a): return np.ma.masked_less(a, 2)
    def generator(): return np.random.default_rng(3)
    def groups(frame): return frame.groupby("k")
    def columns():
        for name in "ab":
            yield np.array([name])
"""

MEANINGS = [
    ("np.allclose(double(np.array([1, 2])), [2, 4])", "ts"),
    ("np.allclose(double(np.array([1, 2])), [2, 5])", "fs"),
    ("(double(np.arange(3)) == np.array([0, 2, 4])).all()", "ts"),
    ("np.testing.assert_array_equal(double(np.arange(3)), [0, 2, 4])", "ts"),
    ("np.testing.assert_array_equal(double(np.arange(3)), [0, 2, 5])", "fs"),
    ("assert_allclose(double(np.ones(2)), [2, 2])", "ts"),
    ("isinstance(double(np.arange(2)), np.ndarray)", "ts"),
    ("double(np.ones(2)).dtype == np.float64", "ts"),
    ("double(np.float32(1.5)).dtype == 'f4' and type(same(np.int8(1))) is np.int8", "ts"),
    ("total(pd.Series([1, 2])) == 3 and isinstance(total(pd.Series([1])), np.integer)", "ts"),
    ("same(np.float64) is np.float64 and same(np.dtype('U3')) == 'U3'", "ts"),
    ("kind(np.array(['a'])) == 'numpy.ndarray' and kind(pd.NaT).endswith('NaTType')", "ts"),
    ("same({'a': [np.arange(2)]})['a'][0].tolist() == [0, 1]", "ts"),
    ("[a.tolist() for a in columns()] == [['a'], ['b']]", "ts"),
    ("apply(np.sqrt, 4.0) == 2.0 and apply(lambda a: a.sum(), np.arange(4)) == 6", "ts"),
    ("(lambda a: same(a) is a)(np.arange(2))", "ts"),
    # pandas
    ("frame(3)['x'].tolist() == [0, 1, 2] and frame(3).shape == (3, 1)", "ts"),
    ("pd.testing.assert_frame_equal(frame(2), pd.DataFrame({'x': range(2)}))", "ts"),
    ("pd.testing.assert_frame_equal(frame(2), pd.DataFrame({'x': [0.0, 1.0]}))", "fs"),
    ("isinstance(same(pd.Timestamp('2024')), pd.Timestamp)", "ts"),
    ("same(pd.NaT) is pd.NaT and same(pd.NA) is pd.NA", "ts"),
    ("same(pd.Series([1], name='s')).name == 's'", "ts"),
    # in place
    ("a = np.array([2, 1])\nsort(a)\nassert a.tolist() == [1, 2]", "ts"),
    ("(lambda a: (sorted_copy(a) == [1, 2]).all())(np.array([2, 1]))", "ts"),
    ("(lambda a: (sorted_copy(a) == a).all())(np.array([2, 1]))", "fs"),
    ("(lambda f: add_column(f) is f and 'y' in f)(frame(2))", "fs"),
    ("f = pd.DataFrame({'x': [1]})\nadd_column(f)\nassert f['y'].tolist() == [2]", "ts"),
    ("len(SHARED) == 3 and sorted_copy(SHARED) is not None", "ts"),
    ("SHARED.tolist() == [3, 1, 2] and same(1) == 1", "ts"),
    # what stays in the cell
    ("masked(np.arange(4)).sum() == 5", "ts"),
    ("bool((masked(np.arange(4)) == [9, 9, 2, 3]).all())", "fs"),
    ("np.allclose(masked(np.arange(4)), [9, 9, 2, 3])", "fs"),
    ("generator().integers(10) == np.random.default_rng(3).integers(10)", "ts"),
    (
        "groups(pd.DataFrame({'k': list('aab'), 'v': [1, 2, 3]})).sum()['v'].tolist() == [3, 3]",
        "ts",
    ),
]


@pytest.fixture(scope="module")
def meanings(scientific: Sandbox) -> dict[str, str]:
    setup = f"{SETUP}\nfrom numpy.testing import assert_allclose\nSHARED = np.array([3, 1, 2])"
    verdict = run(scientific, PROGRAM, *(target for target, _ in MEANINGS), setup=setup)
    shown = {}
    for (target, right), result in zip(MEANINGS, verdict.targets, strict=True):
        answer = ("t" if result.true else "f") + result.label.value[0]
        shown[target] = answer if answer == right else f"{answer} {result.detail}"
    return shown


@pytest.mark.parametrize(("target", "right"), MEANINGS)
def test_what_a_target_means(meanings: dict[str, str], target: str, right: str) -> None:
    assert meanings[target] == right


EXPECTED = (
    "np.allclose(f(np.array([1.0, 2.0])), [2.0, 4.0])",
    "(f(np.array([3.0])) == np.array([6.0])).all()",
    "np.testing.assert_array_equal(f(np.array([1.0])), [2.0])",
    "assert f(np.array([5.0]))[0] == 10.0",
    "f(np.array([1.0, 1.0])).sum() == 4.0",
)

FORGERIES = {
    "an array that equals everything": """
        class Any(np.ndarray):
            def __eq__(self, other): return np.True_
            def all(self, *args, **kwargs): return True
            def __array__(self, *args, **kwargs): return np.array([2.0, 4.0])
            def __array_ufunc__(self, *args, **kwargs): return np.True_
            def __array_function__(self, *args, **kwargs): return True
            def __getitem__(self, index): return 10.0
            def sum(self, *args): return 4.0
        def f(a): return np.zeros(len(a)).view(Any)
    """,
    "a number that equals everything": """
        class Any(np.float64):
            def __eq__(self, other): return True
            def __array_ufunc__(self, *args, **kwargs): return np.True_
            def __getitem__(self, index): return 10.0
            def sum(self): return 4.0
        def f(a): return Any(0)
    """,
    "an object that says it is an array": """
        class Liar:
            __class__ = np.ndarray
            dtype, shape, ndim, size = np.dtype("f8"), (1,), 1, 1
            def __eq__(self, other): return True
            def __array_ufunc__(self, *args, **kwargs): return np.True_
            def __array_function__(self, *args, **kwargs): return True
            def __getitem__(self, index): return self
        def f(a): return Liar()
    """,
    "memory of the judge as an array": """
        class Window:
            def __init__(self, a):
                self.a = a
                self.__array_interface__ = {
                    "version": 3, "shape": a.shape, "typestr": "<f8", "data": (0x400000, False),
                }
        def f(a): return Window(a)
    """,
    "masked values": """
        def f(a): return np.ma.masked_all(a.shape)
    """,
    "an array of liars": """
        class Any(float):
            def __eq__(self, other): return True
            def __sub__(self, other): return 0.0
            __rsub__ = __add__ = __radd__ = __sub__
        def f(a): return np.array([Any(0)] * len(a), dtype=object)
    """,
    "patched comparisons": """
        np.allclose = np.array_equal = lambda *args, **kwargs: True
        np.testing.assert_array_equal = lambda *args, **kwargs: None
        import sys
        sys.modules["numpy.testing"] = np
        def f(a): return a
    """,
    "another module in numpy's place": """
        import sys, types
        fake = types.ModuleType("numpy")
        class ndarray:
            def __init__(self): self.dtype, self.shape, self.nbytes = self, [1], 0
            names, kind, str = None, "f", "<f8"
            def view(self, cls): return self
            def tobytes(self): return b""
            def __eq__(self, other): return True
        fake.ndarray, fake.generic, fake.dtype = ndarray, ndarray, ndarray
        sys.modules["numpy"] = fake
        def f(a): return ndarray()
    """,
    "nothing compared": """
        def f(a):
            a[:] = 0
            return a
    """,
}


@pytest.mark.parametrize("program", FORGERIES.values(), ids=FORGERIES)
def test_no_forged_array_passes(scientific: Sandbox, program: str) -> None:
    verdict = run(scientific, "import numpy as np\n" + textwrap.dedent(program), *EXPECTED)
    assert verdict.passed == 0, [target for target in verdict.targets if target.true]
    assert verdict.outcome == "assertion_fail", verdict.detail


def test_an_assertion_of_the_program_s_own_is_no_assertion(scientific: Sandbox) -> None:
    program = """
        class Testing:
            def assert_array_equal(self, *args): return None
        class np: testing = Testing()
        def assert_close(*args): return None
        def f(x): return 0
    """
    targets = ("np.testing.assert_array_equal(f(1), 1)", "assert_close(f(1), 1)")
    verdict = run(scientific, program, *targets, setup="close = assert_close")
    assert [target.true for target in verdict.targets] == [False, False]
    verdict = run(scientific, program, "assert_same(f(1), 1)", setup="assert_same = assert_close")
    assert not verdict.targets[0].true


FRAME_TARGETS = (
    "pd.testing.assert_frame_equal(f(2), pd.DataFrame({'x': [1, 2]}))",
    "f(2).equals(pd.DataFrame({'x': [1, 2]}))",
    "f(2)['x'].tolist() == [1, 2]",
    "(f(2)['x'] == pd.Series([1, 2])).all()",
    "(f(2) == pd.DataFrame({'x': [1, 2]})).all().all()",
    "f(2).to_dict() == {'x': {0: 1, 1: 2}}",
)

FORGED_FRAMES = {
    "a frame that equals everything": """
        class Any(pd.DataFrame):
            def __eq__(self, other): return True
            def equals(self, other): return True
            def __getitem__(self, name): return self
            def tolist(self): return [1, 2]
            def all(self, *args): return True
            def to_dict(self): return {"x": {0: 1, 1: 2}}
            _constructor = property(lambda self: Any)
        def f(n): return Any({"x": [0] * n})
    """,
    "a column of liars": """
        class Any(int):
            def __eq__(self, other): return True
            def __hash__(self): return 1
        class Odd:
            def __eq__(self, other): return True
            def __bool__(self): return True
        def f(n): return pd.DataFrame({"x": pd.Series([Any(0), Odd()], dtype=object)})
    """,
    "patched testing functions": """
        pd.testing.assert_frame_equal = lambda *args, **kwargs: None
        pd.DataFrame.equals = lambda self, other: True
        pd.DataFrame.__eq__ = lambda self, other: True
        pd.Series.tolist = lambda self: [1, 2]
        def f(n): return pd.DataFrame({"x": [0] * n})
    """,
    "an object that says it is a frame": """
        class Liar:
            __class__ = pd.DataFrame
            def __getitem__(self, name): return self
            def __eq__(self, other): return True
        def f(n): return Liar()
    """,
}


@pytest.mark.parametrize("program", FORGED_FRAMES.values(), ids=FORGED_FRAMES)
def test_no_forged_frame_passes(scientific: Sandbox, program: str) -> None:
    verdict = run(scientific, "import pandas as pd\n" + textwrap.dedent(program), *FRAME_TARGETS)
    assert verdict.passed == 0, [target for target in verdict.targets if target.true]
    assert verdict.outcome == "assertion_fail", verdict.detail
