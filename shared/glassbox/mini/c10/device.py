"""device: where a tensor's bytes live (PyTorch: c10/core/Device.h)."""

from typing import Union

KNOWN = ("cpu",)


class device:  # noqa: N801 - PyTorch's own name
    """A place for storages, such as device("cpu"). Equal when type and index are.

    Raises RuntimeError for a type that this framework has no backend for.
    """

    __slots__ = ("type", "index")

    def __init__(self, where: Union[str, "device"]) -> None:
        if isinstance(where, device):
            self.type: str = where.type
            self.index: int | None = where.index
            return
        if not isinstance(where, str):
            raise TypeError(f'device() needs a string such as "cpu", got {type(where).__name__}')
        kind, colon, number = where.partition(":")
        if kind not in KNOWN:
            raise RuntimeError(f"no device is called {where!r}; the devices here are {', '.join(KNOWN)}")
        if colon and not number.isdecimal():
            raise RuntimeError(
                f"Invalid device string: {where!r}: after the colon comes a number, as in 'cpu:0'"
            )
        self.type = kind
        self.index = int(number) if colon else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"


CPU = device("cpu")
