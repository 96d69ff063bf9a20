"""Tables of cases that need nothing of their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any


def every_case(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Callable[..., Any]], Any]:
    """Run the cases as `pytest.mark.parametrize` does, but in one test, which names the first that fails.

    To collect, set up and report a test takes 10 ms: for cases of microseconds, which share all fixtures.
    """
    words = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [dict(zip(words, case if len(words) > 1 else (case,), strict=True)) for case in cases]
    assert rows

    def decorate(test: Callable[..., Any]) -> Any:
        if inspect.iscoroutinefunction(test):

            @wraps(test)
            async def all_cases(*arguments: Any, **fixtures: Any) -> None:
                for row in rows:
                    with _named(row):
                        await test(*arguments, **fixtures, **row)
        else:

            @wraps(test)
            def all_cases(*arguments: Any, **fixtures: Any) -> None:
                for row in rows:
                    with _named(row):
                        test(*arguments, **fixtures, **row)

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in words]
        all_cases.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return all_cases

    return decorate


@contextmanager
def _named(row: dict[str, Any]) -> Iterator[None]:
    """The error of a case says which one it is."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"The case is {row!a:.1000}")
        raise
