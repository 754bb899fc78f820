"""Options that are declared together and reach a command as one object."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
Decorator = Callable[[Function], Function]


def grouped(keyword: str, build: Callable[..., Any], *options: Decorator[Any]) -> Decorator[Any]:
    """Return a decorator that declares some options for a command.

    Args:
        keyword: the parameter of the command that takes what they become.
        build: makes that of their values; its parameters have their names, and defaults where no option is declared.
        options: in the order of the help text.
    """
    names = list(inspect.signature(build).parameters)

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def collected(**values: Any) -> Any:
            return function(
                **{keyword: build(**{name: values.pop(name) for name in names if name in values})}, **values
            )

        for option in reversed(options):
            collected = option(collected)
        return cast(Function, collected)

    return decorate
