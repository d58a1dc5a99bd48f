"""InferenceMode: whether new tensors may stay outside of autograd for good (PyTorch: c10/core/InferenceMode.h).

In the mode the Autograd keys are excluded and ADInplaceOrView is not included, so no call of an inference tensor
meets either; a tensor made in the mode has neither key and no version counter.
"""

from contextvars import ContextVar, Token
from types import TracebackType

from .dispatch_key_set import AD_INPLACE_OR_VIEW, AUTOGRAD
from .grad_mode import grad_enabled
from .local_dispatch_key_set import KeysGuard

# How many blocks are open in the whole process: while there is none, making a tensor costs no look-up.
blocks = [0]
_enabled: ContextVar[bool] = ContextVar("inference_mode", default=False)


def is_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return _enabled.get()


class InferenceMode:
    """`with InferenceMode():` for this thread; InferenceMode(False) leaves the mode for the block."""

    __slots__ = ("_enter", "_guard", "_mode", "_grad")

    def __init__(self, mode: bool = True) -> None:
        self._enter = mode
        if mode:
            self._guard = KeysGuard(exclude=AUTOGRAD, drop_included=AD_INPLACE_OR_VIEW)
        else:
            self._guard = KeysGuard(include=AD_INPLACE_OR_VIEW, drop_excluded=AUTOGRAD)
        self._mode: list[Token[bool]] = []
        self._grad: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._guard.__enter__()
        self._mode.append(_enabled.set(self._enter))
        self._grad.append(grad_enabled.set(not self._enter))
        blocks[0] += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        blocks[0] -= 1
        grad_enabled.reset(self._grad.pop())
        _enabled.reset(self._mode.pop())
        self._guard.__exit__(kind, error, trace)
