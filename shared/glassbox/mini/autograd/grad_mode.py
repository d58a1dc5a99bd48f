"""no_grad and its kin: what is recorded, for a block or a function (PyTorch: torch/autograd/grad_mode.py).

no_grad switches recording off and nothing else: the same kernels run. inference_mode takes the Autograd keys out of
every call and makes tensors that can never enter a graph.
"""

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ..c10 import inference_mode as modes
from ..c10.grad_mode import grad_enabled

F = TypeVar("F", bound=Callable[..., Any])


class _DecoratorContextManager:
    """A block that also wraps functions; of a generator each step runs inside, what happens in between does not."""

    def clone(self) -> Any:
        """A block of the same kind: each call of a wrapped function has its own."""
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *_: Any) -> None:
        raise NotImplementedError

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            raise TypeError(
                f"cannot decorate the class {function.__name__} with {type(self).__name__}: decorate its methods"
            )
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _wrap_generator(self, function: Any) -> Any:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            try:
                with self.clone():
                    given = generator.send(None)
                while True:
                    try:
                        sent = yield given
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            given = generator.throw(error)
                    else:
                        with self.clone():
                            given = generator.send(sent)
            except StopIteration as stop:
                return stop.value

        return wrapped


class _GradMode(_DecoratorContextManager):
    _mode: bool

    def __new__(cls, function: Any = None) -> Any:
        made = super().__new__(cls)
        return made if function is None else made(function)

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(grad_enabled.get())
        grad_enabled.set(self._mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        grad_enabled.set(self._before.pop())


class no_grad(_GradMode):  # noqa: N801 - PyTorch's own name
    """`with no_grad():`, `@no_grad()` or `@no_grad`: nothing is recorded; results do not require grad."""

    _mode = False


class enable_grad(_GradMode):  # noqa: N801 - PyTorch's own name
    """`with enable_grad():`, `@enable_grad()` or `@enable_grad`: recorded even inside of no_grad."""

    _mode = True


class set_grad_enabled(_DecoratorContextManager):  # noqa: N801 - PyTorch's own name
    """Turn recording on or off, from the call on; as a `with` block, until its end; as a decorator, in the function."""

    def __init__(self, mode: bool) -> None:
        self._before = grad_enabled.get()
        self._mode = mode
        grad_enabled.set(mode)

    def __call__(self, function: F) -> F:
        # It was meant for the function alone.
        grad_enabled.set(self._before)
        return super().__call__(function)

    def __enter__(self) -> None:
        grad_enabled.set(self._mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        grad_enabled.set(self._before)

    def clone(self) -> "set_grad_enabled":
        return type(self)(self._mode)

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self._mode})"


class inference_mode(_DecoratorContextManager):  # noqa: N801 - PyTorch's own name
    """`with inference_mode():`, `@inference_mode()` or `@inference_mode`: calls skip autograd altogether.

    Tensors made in the block have no version and can never be saved for backward. inference_mode(False) leaves the
    mode.
    """

    def __new__(cls, mode: Any = True) -> Any:
        made = super().__new__(cls)
        if isinstance(mode, bool):
            return made
        made.__init__(True)  # type: ignore[misc]
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        if isinstance(mode, bool):
            self._mode = mode
        self._open: list[modes.InferenceMode] = []

    def __enter__(self) -> None:
        block = modes.InferenceMode(self._mode)
        block.__enter__()
        self._open.append(block)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.pop().__exit__(kind, error, trace)

    def clone(self) -> "inference_mode":
        return type(self)(self._mode)


def is_grad_enabled() -> bool:
    """Whether this thread records what a backward pass would need."""
    return grad_enabled.get()


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return modes.is_enabled()
