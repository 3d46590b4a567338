"""What a judge can ask of a cell, by name.

Each takes first the exceptions that iterators raised after some items, by the iterator's id: the
items come first, the exception with the next request. Runs inside the cell; written for Python 3.8.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Pending = dict[int, BaseException]


_builtins = dict(__builtins__ if isinstance(__builtins__, dict) else vars(__builtins__))


def op_value(pending: Pending, value: Any) -> Any:
    return value


def op_call(pending: Pending, function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def op_get(pending: Pending, value: Any, name: str) -> Any:
    return getattr(value, name)


def op_set(pending: Pending, value: Any, name: str, item: Any) -> None:
    setattr(value, name, item)


def op_iter(pending: Pending, value: Any) -> Any:
    return iter(value)


def op_next(pending: Pending, iterator: Any, count: int) -> Any:
    """``(items, ended)``; an exception after some items is raised by the next request."""
    if id(iterator) in pending:
        raise pending.pop(id(iterator))
    items: list[Any] = []
    for _ in range(count):
        try:
            items.append(next(iterator))
        except StopIteration:
            return (items, True)
        except BaseException as problem:
            pending[id(iterator)] = problem
            break
    return (items, False)


def op_await(pending: Pending, awaitable: Any) -> Any:
    import asyncio

    return asyncio.run(awaitable)


def op_equal(pending: Pending, left: Any, right: Any) -> bool:
    return bool(left == right)


def op_instance(pending: Pending, value: Any, cls: Any) -> bool:
    return isinstance(value, cls)


def op_subclass(pending: Pending, value: Any, cls: Any) -> bool:
    return issubclass(value, cls)


def op_text(pending: Pending, value: Any, function: str) -> str:
    return str(value) if function == "str" else repr(value)


def op_length(pending: Pending, value: Any) -> int:
    return len(value)


def op_item(pending: Pending, value: Any, key: Any) -> Any:
    return value[key]


def op_put_item(pending: Pending, value: Any, key: Any, item: Any) -> None:
    value[key] = item


def op_delete_item(pending: Pending, value: Any, key: Any) -> None:
    del value[key]


def op_contains(pending: Pending, value: Any, item: Any) -> bool:
    return item in value


def op_enter(pending: Pending, value: Any) -> Any:
    return type(value).__enter__(value)


def op_exit(pending: Pending, value: Any, problem: str, message: str) -> None:
    """Leave a ``with`` block; ``problem`` is the name of the exception raised in it, or empty."""
    cls = _builtins.get(problem, RuntimeError) if problem else None
    type(value).__exit__(value, cls, cls and cls(message), None)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "value": op_value,
    "call": op_call,
    "get": op_get,
    "set": op_set,
    "iter": op_iter,
    "next": op_next,
    "await": op_await,
    "equal": op_equal,
    "instance": op_instance,
    "subclass": op_subclass,
    "text": op_text,
    "length": op_length,
    "item": op_item,
    "put_item": op_put_item,
    "delete_item": op_delete_item,
    "contains": op_contains,
    "enter": op_enter,
    "exit": op_exit,
}
