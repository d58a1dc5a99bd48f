"""device: where a tensor's bytes live (PyTorch: c10/core/Device.h)."""

from typing import Union

from .dispatch_key_set import AD_INPLACE_OR_VIEW, AUTOCAST, AUTOGRAD, remove_key, tensor_keys

# Device type -> its backend's name among the dispatch keys. The simulated accelerator takes the place that PyTorch
# keeps for backends outside its tree.
BACKEND_OF = {"cpu": "CPU", "sim": "PrivateUse1"}
_KEYS = {kind: tensor_keys(backend) for kind, backend in BACKEND_OF.items()}


class device:  # noqa: N801 - PyTorch's own name
    """A place for storages, such as device("cpu"). There is one object per type and index, so `is` compares them.

    keys, inference_keys: the dispatch keys of an ordinary tensor there, and of one made in inference mode;
    backend_keys: the backend's own alone.
    Raises RuntimeError for a type that this framework has no backend for, TypeError for no string.
    """

    __slots__ = ("type", "index", "keys", "inference_keys", "backend_keys")

    type: str
    index: int | None
    keys: int
    inference_keys: int
    backend_keys: int

    def __new__(cls, where: Union[str, "device"], index: int | None = None) -> "device":
        if isinstance(where, device):
            return where
        if not isinstance(where, str):
            raise TypeError(f'device() needs a string such as "cpu", got {type(where).__name__}')
        kind, colon, number = where.partition(":")
        if kind not in BACKEND_OF:
            raise RuntimeError(f"no device is called {where!r}; the devices here are {', '.join(BACKEND_OF)}")
        if colon and (index is not None or not number.isdecimal()):
            raise RuntimeError(
                f"Invalid device string: {where!r}: after the colon comes a number, as in 'cpu:0'"
            )
        place = int(number) if colon else index
        found = _known.get((kind, place))
        if found is None:
            found = object.__new__(cls)
            found.type = kind
            found.index = place
            found.keys = _KEYS[kind]
            found.inference_keys = remove_key(found.keys, AUTOGRAD | AD_INPLACE_OR_VIEW)
            found.backend_keys = remove_key(found.inference_keys, AUTOCAST)
            _known[kind, place] = found
        return found

    def without_index(self) -> "device":
        """The device as tensors on it have it: there is one of each type, so "sim:0" is "sim".

        RuntimeError for the number of a simulated device that there is not.
        """
        if self.index is None:
            return self
        if self.index and self.type != "cpu":
            raise RuntimeError(f"{self.type} error: invalid device ordinal: {self} of 1 device")
        return device(self.type)

    def __reduce__(self) -> tuple[object, ...]:
        return device, (str(self),)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"


_known: dict[tuple[str, int | None], device] = {}
CPU = device("cpu")
