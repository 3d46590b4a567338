"""Which values are data on the wire, told from their types without running a candidate's code.

This file runs inside the cell and the judge, so it is written for Python 3.8 and imports nothing
but what the interpreter has loaded anyway. It is executed with a private copy of the builtins:
what a candidate does to ``builtins`` does not reach it.
"""

from __future__ import annotations

import sys

from grading.engine.framing import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class NotData(Exception):
    """A library's object that stays where it is."""


MAX_DEPTH = 60
MAX_ITEMS = 10_000

mro_of: Any = type.__dict__["__mro__"].__get__
_name_of = type.__dict__["__name__"].__get__

_STDLIB = {
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "datetime": ("datetime", "date", "time", "timedelta", "timezone"),
    "collections": ("OrderedDict", "defaultdict", "Counter", "deque"),
}

EXTENSION_ARRAYS = (
    *("Categorical", "IntegerArray", "FloatingArray", "BooleanArray"),
    *("StringArray", "ArrowStringArray", "DatetimeArray", "PeriodArray", "IntervalArray"),
)

# Masked arrays and matrices compare by rules of their own: they are named here to be no data.
_LIBRARIES = {
    "numpy": ("ndarray", "generic", "dtype", "matrix"),
    "numpy.ma": ("MaskedArray",),
    "pandas": ("Series", "DataFrame", "Index", "Timestamp", "Timedelta", "Period", "Interval"),
    "pandas.arrays": EXTENSION_ARRAYS,
}

_DATA = (int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict)

_CONTAINERS = frozenset((list, dict, set, bytearray))
_PLAIN = frozenset((bool, range, *_DATA))

BUILTIN_TYPES = {cls: cls.__name__ for cls in (bool, object, type, range, type(None), *_DATA)}

# What of numpy and pandas can be changed in place, and the tags of all that travels as data.
LIBRARY_CONTAINERS = frozenset(("ndarray", "Series", "DataFrame"))
LIBRARY_TAGS = LIBRARY_CONTAINERS | {
    *("npscalar", "npdtype", "nptype", "Index", "column", "Timestamp", "Timedelta", "Period"),
    *("Interval", "missing"),
}

CONSTANTS = {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}


def class_name(cls: type) -> str:
    return _name_of(cls)[:200]


def loaded_class(module: str, name: str) -> type | None:
    """The class of that name where its module is loaded already."""
    found = sys.modules.get(module)
    cls = getattr(found, name, None)
    return cls if isinstance(cls, type) else None


def class_at(module: str, qualified_name: str) -> Any:
    """What stands in a loaded module under a dotted name, or None."""
    found: Any = sys.modules.get(module)
    for name in qualified_name.split("."):
        found = getattr(found, name, None)
    return found


def stdlib_name(cls: type) -> str:
    """Name of a data class of the standard library, or an empty string."""
    for module, names in _STDLIB.items():
        if module in sys.modules:
            for name in names:
                if loaded_class(module, name) is cls:
                    return name
    return ""


def library_name(cls: type) -> str:
    """Name of the class of numpy or pandas that ``cls`` is or is derived from, if any."""
    if "numpy" not in sys.modules:
        return ""
    known = {
        id(found): name
        for module, names in _LIBRARIES.items()
        for name in names
        if (found := loaded_class(module, name)) is not None
    }
    pandas = sys.modules.get("pandas")
    for missing in ("NaT", "NA"):
        known[id(type(getattr(pandas, missing, pandas)))] = "missing"
    for base in mro_of(cls):
        if id(base) in known:
            return known[id(base)]
    return ""


def is_number_type(cls: type) -> bool:
    """One of numpy's own scalar types."""
    generic = loaded_class("numpy", "generic")
    return generic in mro_of(cls) and loaded_class("numpy", class_name(cls)) is cls


def data_base(cls: type) -> type | None:
    """The data type that ``cls`` is derived from, if any."""
    for base in mro_of(cls):
        if base in _PLAIN or stdlib_name(base):
            return base
    return None


def container_base(cls: type) -> Any:
    """The mutable container that ``cls`` is derived from; those outside builtins by name."""
    library = library_name(cls)
    if library in LIBRARY_CONTAINERS:
        return library
    for base in mro_of(cls):
        if base in _CONTAINERS:
            return base
        if loaded_class("collections", "deque") is base:
            return "deque"
    raise WireError("not a container")
