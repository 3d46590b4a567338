"""What a candidate may not import or do: a policy label, not the control.

The sandbox is the control. This module makes honest refusals: a denied import raises
``ImportError("denied")`` and is recorded, whoever catches it. It looks at who imports: the
standard library keeps its own imports (tempfile needs shutil, asyncio needs socket).

Two layers. The candidate's module has its own ``__import__`` and importlib is guarded for it, so
that a module which is loaded already is refused too. An audit hook, which Python code cannot
remove, covers behaviour: starting a process is refused whoever asks; imports, sockets and dlopen
are refused unless the nearest frame outside importlib belongs to the standard library or
site-packages.

Runs inside the cell with a private copy of the builtins; written for Python 3.8.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

DEFAULT = (
    "os.system",
    "subprocess",
    "socket",
    "requests",
    "urllib",
    "urllib.request",
    "urllib.error",
    "urllib.parse",
    "ctypes",
    "shutil",
    "http.client",
    "asyncio.subprocess",
)

# The C halves do the same work without their Python face.
_C_HALVES = {"subprocess": "_posixsubprocess", "socket": "_socket", "ctypes": "_ctypes"}

_PROCESS_EVENTS = frozenset(
    ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn")
)
_LIBRARY_EVENTS = ("socket.", "ctypes.")
# What everything does all the time, and nobody is refused.
_COMMON_EVENTS = frozenset(
    ("builtins.id", "compile", "exec", "object.__getattr__", "object.__setattr__", "open")
)


class Policy:
    """The denylist in force in this process.

    ``library`` are the directories of the standard library and of installed packages.
    ``hits`` are the names refused so far, in order, each once.
    """

    def __init__(
        self, denied: Iterable[str], allow_processes: bool, library: Iterable[str]
    ) -> None:
        names = set(denied)
        self.denied = frozenset(names | {_C_HALVES[n] for n in names if n in _C_HALVES})
        self.allow_processes = allow_processes
        self.library = tuple(library)
        self.hits: list[str] = []
        # Not this file's own: the candidate gets the interpreter's.
        self._import = sys.modules["builtins"].__import__

    def refuse(self, name: str) -> None:
        if name not in self.hits and len(self.hits) < 50:
            self.hits.append(name)
        raise ImportError("denied", name=name)

    def match(self, name: str) -> str:
        """The rule that denies module ``name``, or an empty string."""
        while name:
            if name in self.denied:
                return name
            name = name.rpartition(".")[0]
        return ""

    def check(self, name: str, fromlist: Iterable[str] = ()) -> None:
        if type(name) is not str:
            return
        rule = self.match(name)
        if rule:
            self.refuse(rule)
        for part in fromlist or ():
            if type(part) is str:
                rule = self.match(name + "." + part)
                if rule:
                    self.refuse(rule)

    def install(self) -> None:
        sys.addaudithook(self._audit)

    def guarded_import(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        """``__import__`` for the candidate's module."""
        if not level:
            self.check(name, fromlist)
        module = self._import(name, globals, locals, fromlist, level)
        if name.partition(".")[0] == "importlib":
            self._guard_importlib()
        return module

    def _guard_importlib(self) -> None:
        """Put a check for candidate callers in front of importlib's two doors."""
        importlib = sys.modules["importlib"]
        for name in ("import_module", "__import__"):
            original = getattr(importlib, name)
            if getattr(original, "__wrapped__", None) is None:
                setattr(importlib, name, self._guard(original))

    def _guard(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(name: str, *args: Any, **kwargs: Any) -> Any:
            if not self._from_library():
                self.check(name, kwargs.get("fromlist") or (args[2:3] or ((),))[0])
            return original(name, *args, **kwargs)

        guarded.__wrapped__ = original  # type: ignore[attr-defined]
        return guarded

    def _audit(self, event: str, args: Any) -> None:
        if event in _COMMON_EVENTS:
            return
        if event == "import":
            rule = self.match(args[0]) if type(args[0]) is str else ""
            if rule and not self._from_library():
                self.refuse(rule)
        elif event == "os.system":
            self.refuse("os.system")
        elif event == "subprocess.Popen" or event in _PROCESS_EVENTS:
            if not self.allow_processes:
                if self._from_package():
                    raise PermissionError(1, "denied")
                self.refuse(event)
        elif event.startswith(_LIBRARY_EVENTS):
            rule = self.match(event.partition(".")[0])
            if rule and not self._from_library():
                self.refuse(rule)

    def _from_package(self) -> bool:
        """Whether an installed package asks for a process: matplotlib looks for fonts, say.

        It gets the answer of a system that forbids it, which it is prepared for.
        """
        frame: Any = sys._getframe(1)
        while frame is not None:
            file_name = frame.f_code.co_filename
            if file_name.startswith(self.library) and "/site-packages/" in file_name:
                return True
            if file_name != __file__ and not file_name.endswith(("/subprocess.py", "/os.py")):
                return False
            frame = frame.f_back
        return False

    def _from_library(self) -> bool:
        """Whether the nearest frame outside importlib and this file is library code."""
        frame: Any = sys._getframe(1)
        while frame is not None:
            file_name = frame.f_code.co_filename
            if not file_name.startswith("<frozen importlib") and file_name != __file__:
                return file_name.startswith(self.library) or file_name.startswith("<frozen ")
            frame = frame.f_back
        return True
