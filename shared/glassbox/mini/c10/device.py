"""device: where a tensor's bytes live (PyTorch: c10/core/Device.h)."""

from typing import Union

from .dispatch_key_set import AD_INPLACE_OR_VIEW, AUTOCAST, AUTOGRAD, remove_key, tensor_keys

# Device type -> its backend's name among the dispatch keys. The simulated accelerator takes the place that PyTorch
# keeps for backends outside its tree.
BACKEND_OF = {"cpu": "CPU", "sim": "PrivateUse1"}
_KEYS = {kind: tensor_keys(backend) for kind, backend in BACKEND_OF.items()}


class device:  # noqa: N801 - PyTorch's own name
    """A place for storages, such as device("cpu"). Equal when type and index are.

    keys, inference_keys: the dispatch keys of an ordinary tensor there, and of one made in inference
    mode; backend_keys: the backend's own alone.
    Raises RuntimeError for a type that this framework has no backend for.
    """

    __slots__ = ("type", "index", "keys", "inference_keys", "backend_keys")

    def __init__(self, where: Union[str, "device"]) -> None:
        if isinstance(where, device):
            self.type: str = where.type
            self.index: int | None = where.index
            self.keys: int = where.keys
            self.inference_keys: int = where.inference_keys
            self.backend_keys: int = where.backend_keys
            return
        if not isinstance(where, str):
            raise TypeError(f'device() needs a string such as "cpu", got {type(where).__name__}')
        kind, colon, number = where.partition(":")
        if kind not in BACKEND_OF:
            raise RuntimeError(f"no device is called {where!r}; the devices here are {', '.join(BACKEND_OF)}")
        if colon and not number.isdecimal():
            raise RuntimeError(
                f"Invalid device string: {where!r}: after the colon comes a number, as in 'cpu:0'"
            )
        self.type = kind
        self.index = int(number) if colon else None
        self.keys = _KEYS[kind]
        self.inference_keys = remove_key(self.keys, AUTOGRAD | AD_INPLACE_OR_VIEW)
        self.backend_keys = remove_key(self.inference_keys, AUTOCAST)

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
