"""Functions that run under a lock."""

import contextlib
import functools
import inspect
import re
import string
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from . import errors

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def decorated(
    function: Callable[Parameters, Result],
    begin: Callable[[tuple[Any, ...], dict[str, Any]], Any],
    awaited: bool,
) -> Callable[Parameters, Result]:
    """The function, or coroutine, as it runs under the lock, guard or run that its arguments begin, in every call. Where they begin
    none it answers ``None``."""
    if not callable(function):
        raise _refused(function, "is no function; a lock decorates what can be called")
    if _is(inspect.isgeneratorfunction, function) or _is(inspect.isasyncgenfunction, function):
        raise _refused(function, "is a generator: the lock would be released before its body runs; take it there")
    if awaited and not _is(inspect.iscoroutinefunction, function):
        raise _refused(function, "is no coroutine: decorate it with a lock of `fencelock`")
    if not awaited and _is(inspect.iscoroutinefunction, function):
        raise _refused(function, "is a coroutine: decorate it with a lock of `fencelock.asyncio`")
    if awaited:

        @functools.wraps(function)
        async def under(*arguments: Any, **named: Any) -> Any:
            entered = begin(arguments, named)
            if inspect.isawaitable(entered):
                entered = await entered
            if not entered:
                return None
            async with entered:
                return await cast(Any, function)(*arguments, **named)

        return cast(Any, under)

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        if not (entered := begin(arguments, named)):
            return None
        with entered:
            result = cast(Any, function)(*arguments, **named)
            if inspect.iscoroutine(result):
                # Something in between hides an `async def`.
                result.close()
                why = "answers a coroutine: the lock would be released before it runs; decorate the `async def`"
                raise _refused(function, why)
            if _is_deferred(function, result):
                raise _refused(function, "answers what has yet to run: the lock would be released before; take it there")
            return result

    return cast(Any, called)


def named(name: str, signature: inspect.Signature) -> None:
    """Refuses a lock's name that says other arguments than the function has, before it is called."""
    try:
        said = [field for _, field, _, _ in string.Formatter().parse(name) if field is not None]
    except ValueError as error:
        raise _misnamed(name, str(error)) from None
    for field in said:
        argument = re.split(r"[.\[]", field)[0]
        if argument not in signature.parameters:
            raise _misnamed(name, f"there is no argument `{argument}`")


def _misnamed(name: str, why: str) -> errors.InvalidArgumentError:
    message = f"the name `{name}` cannot be told from the function's arguments: {why}"
    return errors.InvalidArgumentError(message, fields={"argument": "name"})


def _is_deferred(function: Callable[..., object], result: object) -> bool:
    """Whether a generator's body is behind a result, itself or as a context manager."""
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        return True
    made = inspect.unwrap(function)
    managers = (contextlib.AbstractContextManager, contextlib.AbstractAsyncContextManager)
    return isinstance(result, managers) and (inspect.isgeneratorfunction(made) or inspect.isasyncgenfunction(made))


def _is(sort: Callable[[object], bool], function: object) -> bool:
    """Whether a function, or what is called of any other object, is of this sort."""
    return sort(function) or sort(getattr(type(function), "__call__", None))


def _refused(function: object, why: str) -> errors.InvalidArgumentError:
    name = getattr(function, "__qualname__", None) or repr(function)
    return errors.InvalidArgumentError(f"`{name}` {why}", fields={"argument": "function"})
