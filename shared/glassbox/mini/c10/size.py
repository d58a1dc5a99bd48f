"""Size: the type of a shape (PyTorch: torch.Size, torch/csrc/Size.cpp)."""

import math
from typing import Any


class Size(tuple[int, ...]):
    """A tuple of ints that says what it is and can count the elements."""

    __slots__ = ()

    def numel(self) -> int:
        """The product of the sizes; 1 for a 0-d shape."""
        return math.prod(self)

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> "Size":
        return Size(tuple(self) + tuple(other))

    def __repr__(self) -> str:
        return f"mini.Size({list(self)})"
