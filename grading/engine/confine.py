"""What a sandboxed process gives up by itself before it sees anything untrusted.

The host works out what is to be done (:mod:`grading.engine.isolation.hardening`); this carries
it out and raises where the kernel refuses, so a process that goes on is confined. It runs in
the interpreter that is to be confined, by the C half of ctypes alone: a second process or the
whole of ctypes would cost more than everything done here. Written for Python 3.8.
"""

from __future__ import annotations

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
# What the host writes into a filter for the number of the process that installs it.
_OWN_PID = 0x53454C46
_SIGKILL = 9
_CAPABILITY_VERSION_3 = 0x20080522
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_RULE_PATH_BENEATH = 1
# The rights that a rule on a file may name: execute, write, read, truncate, device ioctl.
_LANDLOCK_FILE_RIGHTS = 1 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
_BYTES_HEADER = bytes.__basicsize__ - 1


class Refused(Exception):
    """The kernel did not do what was asked of it."""


class Kernel:
    """Calls into the C library; arguments are 32-bit integers and byte strings."""

    def __init__(self) -> None:
        if sys.implementation.name != "cpython":
            raise Refused("no way to the C library in " + sys.implementation.name)
        import _ctypes

        # Stubs do not know the C half.
        self.native: Any = _ctypes
        self.library = self.native.dlopen(None, 2)
        sys.modules.pop("_ctypes", None)

    def call(self, name: str, *arguments: Any) -> int:
        """The function's result; Refused for -1."""
        function = self.native.dlsym(self.library, name)
        result: int = self.native.call_cdeclfunction(function, arguments)
        if result == -1:
            raise Refused(name + " " + repr(arguments[0]))
        return result

    def apply(self, plan: dict[str, Any]) -> None:
        """Carry out the steps of a plan, in an order in which none forbids a later one."""
        if plan.get("with_parent"):
            self.call("prctl", _PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
        if plan.get("private"):
            self.call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)
        self.call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if plan.get("landlock"):
            self.landlock(**plan["landlock"])
        if plan.get("capabilities"):
            self.drop_capabilities()
        if plan.get("seccomp"):
            self.filter(bytes.fromhex(plan["seccomp"]))

    def landlock(self, ruleset: str, rules: list[Any], handle: int | None = None) -> None:
        """``ruleset`` is the attribute structure in hex; a rule is a path and its rights.

        ``handle`` is of a :meth:`ruleset` that ``rules`` come on top of.
        """
        if handle is None:
            handle = self.ruleset(ruleset)
        for path, rights in rules:
            self.allow(handle, path, rights)
        self.call("syscall", _LANDLOCK_RESTRICT_SELF, handle, 0)
        posix.close(handle)

    def ruleset(self, ruleset: str) -> int:
        """Descriptor of a new one without rules."""
        attribute = bytes.fromhex(ruleset)
        return self.call("syscall", _LANDLOCK_CREATE_RULESET, attribute, len(attribute), 0)

    def prepare(self, plan: dict[str, Any]) -> dict[str, Any]:
        """The plan with what is the same for all copies of this process done already."""
        if not plan.get("landlock"):
            return plan
        ruleset, rules = plan["landlock"]["ruleset"], plan["landlock"]["rules"]
        handle = self.ruleset(ruleset)
        own = [rule for rule in rules if rule[0].startswith("/proc/self")]
        for path, rights in rules:
            if not path.startswith("/proc/self"):
                self.allow(handle, path, rights)
        return dict(plan, landlock={"ruleset": ruleset, "rules": own, "handle": handle})

    def allow(self, handle: int, path: str, rights: int) -> None:
        try:
            beneath = posix.open(path, posix.O_PATH | posix.O_CLOEXEC)
        except FileNotFoundError:
            return
        # A directory's mode is 04xxxx in octal.
        if posix.fstat(beneath).st_mode & 0o170000 != 0o040000:
            rights &= _LANDLOCK_FILE_RIGHTS
        attribute = rights.to_bytes(8, sys.byteorder) + beneath.to_bytes(4, sys.byteorder)
        kind = _LANDLOCK_RULE_PATH_BENEATH
        self.call("syscall", _LANDLOCK_ADD_RULE, handle, kind, attribute, 0)
        posix.close(beneath)

    def drop_capabilities(self) -> None:
        """None effective, permitted or inheritable; an exec cannot bring them back."""
        header = _CAPABILITY_VERSION_3.to_bytes(4, sys.byteorder) + bytes(4)
        self.call("capset", header, bytes(24))

    def filter(self, program: bytes) -> None:
        own_pid = posix.getpid().to_bytes(4, sys.byteorder)
        program = program.replace(_OWN_PID.to_bytes(4, sys.byteorder), own_pid)
        address = id(program) + _BYTES_HEADER
        count = len(program) // 8
        # struct sock_fprog: a short, padding, a pointer.
        holder = count.to_bytes(8, sys.byteorder)
        if sys.byteorder == "big":
            raise Refused("no filter for big-endian machines")
        holder += address.to_bytes(8, sys.byteorder)
        self.call("prctl", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, holder, 0, 0)


def confine(plan: dict[str, Any] | None) -> None:
    """Carry out ``plan``; raises Refused, or OSError, with the step that did not work."""
    if plan:
        Kernel().apply(plan)
