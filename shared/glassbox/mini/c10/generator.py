"""Generator: the stream of random bits and its seed (PyTorch: ATen/CPUGeneratorImpl.cpp).

The bits are those of a Mersenne twister seeded as PyTorch seeds it, so that a seed gives the same numbers
here and there. What distributions make of them is in aten/native/random_ops.py.
"""

import secrets
import threading
from typing import Any

import numpy as np

from .device import CPU
from .device import device as Device  # noqa: N812
from .dtype import uint8
from .tensor_impl import TensorImpl

DEFAULT_SEED = 67280421310721

# get_state gives the bytes of this struct, as PyTorch does.
_STATE = np.dtype(
    [
        ("seed", "u8"),
        ("left", "i4"),
        ("seeded", "i4"),
        ("next", "u8"),
        ("state", "u8", 624),
        ("normal_x", "f8"),
        ("normal_y", "f8"),
        ("normal_rho", "f8"),
        ("normal_is_valid", "i4"),
        ("next_float_normal", "f4"),
        ("next_float_normal_is_valid", "?"),
    ],
    align=True,
)


class Generator:
    """A stream of random 32-bit numbers. Two threads that draw from one take turns.

    lock: held by a kernel while it draws all that it needs. next_normal: the second of a pair of normal
    numbers, kept for the next call; None where there is none.
    """

    __slots__ = ("device", "lock", "next_normal", "_seed", "_bits")

    def __init__(self, device: Any = "cpu") -> None:
        self.device = CPU if device == "cpu" else Device(device)
        self.lock = threading.RLock()
        self._bits = np.random.MT19937()
        self.manual_seed(DEFAULT_SEED)

    def manual_seed(self, seed: int) -> "Generator":
        """Start anew from a seed of -2**63 to 2**64 - 1, a negative one counted from 2**64; returns self.

        Raises ValueError out of that range.
        """
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"a seed has 64 bits: expected -2**63 <= seed < 2**64, got {seed}")
        with self.lock:
            self._seed = seed % 2**64
            self._bits._legacy_seeding(self._seed % 2**32)
            self.next_normal: float | None = None
        return self

    def seed(self) -> int:
        """Start anew from a seed that nobody can tell in advance, and return it."""
        self.manual_seed(secrets.randbits(64))
        return self._seed

    def initial_seed(self) -> int:
        """The seed it was started from."""
        return self._seed

    def random(self, count: int) -> np.ndarray:
        """The next 32-bit numbers, as uint64."""
        return self._bits.random_raw(count)

    def random64(self, count: int) -> np.ndarray:
        """The next 64-bit numbers, as uint64; each takes two of 32 bits, the first above the second."""
        halves = self._bits.random_raw(2 * count)
        return (halves[::2] << np.uint64(32)) | halves[1::2]

    def get_state(self) -> Any:
        """All that decides what comes next, as a uint8 tensor of 5056 bytes: PyTorch's own format."""
        record = np.zeros((), _STATE)
        with self.lock:
            twister = self._bits.state["state"]
            record["seed"], record["seeded"] = self._seed, 1
            record["state"], record["next"] = twister["key"], twister["pos"] % 624
            record["left"] = 625 - twister["pos"]
            if self.next_normal is not None:
                record["normal_y"], record["normal_is_valid"] = self.next_normal, 1
        return TensorImpl.adopt(np.frombuffer(record.tobytes(), np.uint8).copy(), uint8, CPU)

    def set_state(self, new_state: TensorImpl) -> "Generator":
        """Go on from what get_state gave; TypeError for another dtype, RuntimeError for another size."""
        if not isinstance(new_state, TensorImpl) or new_state._dtype is not uint8:
            raise TypeError("RNG state must be a uint8 tensor, such as get_state() gives")
        if new_state._shape != (_STATE.itemsize,):
            raise RuntimeError(
                f"RNG state is wrong size: expected {_STATE.itemsize} bytes, got shape "
                f"{list(new_state._shape)}"
            )
        record = np.frombuffer(new_state.strided_array().tobytes(), _STATE)[0]
        with self.lock:
            self._seed = int(record["seed"])
            self._bits.state = {
                "bit_generator": "MT19937",
                "state": {"key": record["state"].astype(np.uint32), "pos": 625 - int(record["left"])},
            }
            self.next_normal = float(record["normal_y"]) if record["normal_is_valid"] else None
        return self

    def __repr__(self) -> str:
        return f"<mini.Generator on {self.device}, seed {self._seed}>"


# The generator of every op that is given none.
default_generator = Generator()
default_generator.seed()
