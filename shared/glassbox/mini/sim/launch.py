"""Launch: a CPU kernel becomes one of the simulated device (PyTorch: ATen/native/cuda).

The results are computed at once, on the host; what the device would do with its time and memory is written
down beside them.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..c10.dtype import bfloat16
from ..c10.tensor_impl import TensorImpl
from . import cost, memory, races
from .cost import nanoseconds
from .effects import Effects, effects, on_sim, tensors
from .footprint import footprint
from .runtime import StreamState, device
from .same_device import check_same_device
from .streams import current_state

Kernel = Callable[..., Any]

TRANSFERS = frozenset(["copy_", "_to_copy"])
# What a failure of the elements (an index out of range) raises, as one of the call may too.
_ELEMENT_ERRORS = (IndexError, RuntimeError, ValueError)
_ONE_NUMBER = 8


def launch(op: str, kernel: Kernel) -> Kernel:
    """The kernel of `op` (such as "add.Tensor") for sim, made of the one for CPU, with the same arguments.

    It raises what the CPU kernel raises for shapes and dtypes, and RuntimeError for tensors of the CPU among
    those on sim; an error in the elements, such as an index
    out of range, is kept until the host waits, and is a RuntimeError then. It raises OutOfMemoryError and
    RaceError too, and the device's own error once a wait has brought that up. Calls without a tensor on sim
    go through as they are.
    """
    base = op.partition(".")[0]

    def sim_kernel(ks: int, *args: Any) -> Any:
        if device.surfaced and any(map(on_sim, tensors(args))):
            device.surface()
        check_same_device(base, kernel, args)
        try:
            result = kernel(ks, *args)
            problem = None
        except _ELEMENT_ERRORS as error:
            too_many = getattr(error, "nbytes", None)
            if too_many is not None:
                # The host, where the elements lie in truth, has no room for them either.
                raise memory.OutOfMemoryError(memory.no_room(too_many)) from None
            problem = error
            found, result = (
                _blind_result(kernel, ks, args) if any(map(on_sim, tensors(args))) else (False, None)
            )
            if not found:
                raise
        if any(map(on_sim, tensors((*args, result)))):
            with device.lock:
                _account(op, base, args, effects(base, args, result), problem)
        return result

    sim_kernel.__name__ = sim_kernel.__qualname__ = f"sim_{base}"
    sim_kernel.__wrapped__ = kernel  # type: ignore[attr-defined]
    return sim_kernel


def install(register: Callable[[str, Kernel], None], kernels: Iterable[tuple[str, Kernel]]) -> None:
    """Call register(op, sim kernel) for each pair of an op's name and its CPU kernel."""
    for op, kernel in kernels:
        register(op, launch(op, kernel))


def read_back(tensor: TensorImpl) -> None:
    """What looking at a tensor's elements from Python takes: a copy to the host, and waiting for it.

    Nothing for a tensor that is not on sim. RuntimeError if the device has failed by then.
    """
    if not on_sim(tensor):
        return
    with device.lock:
        device.check_usable()
        state = current_state()
        place = memory.holding(tensor._storage, state)
        number = _copy(state, "copy to host", "to host", footprint(tensor).nbytes)
        _touch(place, tensor, state, "copy to host", False, number)
        device.wait_until(state.end, state.clock, "wait for copy")


def spin(us: float, name: str = "spin") -> None:
    """Keep the current stream busy for so long, with a kernel too small to hinder other streams."""
    _not_negative("spin", us)
    with device.lock:
        device.check_usable()
        device.enqueue(current_state(), name, "kernel", nanoseconds(us), share=device.cost.share(1))


def host_work(us: float, name: str = "host work") -> None:
    """Let the host work for so long, as it does between launches in a real program."""
    _not_negative("host_work", us)
    with device.lock:
        device.host_work(name, us, "work")


def _not_negative(function: str, us: float) -> None:
    if not us >= 0:
        raise ValueError(f"{function}() takes a time in microseconds that is not negative, got {us}")


def _account(op: str, base: str, args: tuple[Any, ...], did: Effects, problem: Exception | None) -> None:
    """Memory for new tensors, work for the current stream, the race check, waiting where the host must."""
    device.check_usable()
    state = current_state()
    places = {
        id(each): memory.holding(each._storage, state) for each in (*did.read, *did.written) if on_sim(each)
    }
    if not did.has_kernel:
        if problem is not None:
            device.fail(state, op, str(problem))
        return
    number, waits = _enqueue(op, base, args, did, state)
    if problem is not None:
        device.fail(state, op, f"{problem} (launch {number})")
    for touched, write in ((did.read, False), (did.written, True)):
        for tensor in touched:
            if id(tensor) in places:
                _touch(places[id(tensor)], tensor, state, op, write, number)
    if did.host_looks and base != "_local_scalar_dense":
        _copy(state, "copy to host", "to host", _ONE_NUMBER)
    if waits or did.host_looks:
        device.wait_until(state.end, state.clock, "wait for copy")


def _enqueue(op: str, base: str, args: tuple[Any, ...], did: Effects, state: StreamState) -> tuple[int, bool]:
    """Put the work into the stream; its correlation number, and whether the host waits for it."""
    if base == "_local_scalar_dense":
        return _copy(state, op, "to host", _ONE_NUMBER), True
    if base in TRANSFERS:
        source, target = did.read[-1], did.written[0]
        if on_sim(source) != on_sim(target):
            engine = "to device" if on_sim(target) else "to host"
            # The host's program may look at what was copied to it at once, so only the other way can be
            # left alone.
            non_blocking = engine == "to device" and any(arg is True for arg in args)
            return _copy(state, op, engine, footprint(source).nbytes), not non_blocking
    nbytes, flops = cost.work(op, args, list(filter(on_sim, did.read)), did.written)
    model = device.cost
    duration = nanoseconds(model.kernel_us(op, nbytes, flops))
    share = model.share(cost.elements([*did.read, *did.written]))
    kind = "copy" if base in TRANSFERS else "kernel"
    return device.enqueue(state, op, kind, duration, share=share, nbytes=nbytes, flops=flops), False


def _copy(state: StreamState, name: str, engine: str, nbytes: int) -> int:
    duration = nanoseconds(device.cost.copy_us(nbytes))
    return device.enqueue(state, name, "copy", duration, engine=engine, nbytes=nbytes)


def _touch(
    place: memory.Holding, tensor: TensorImpl, state: StreamState, op: str, write: bool, number: int
) -> None:
    access = races.of_tensor(tensor, state, op, write, number)
    if access is not None:
        memory.touch(place, access, state.clock)


def _blind_result(kernel: Kernel, ks: int, args: tuple[Any, ...]) -> tuple[bool, Any]:
    """(True, what the kernel returns whatever the elements are) if only the elements were at fault.

    The host cannot know the elements at a launch, so an error that is gone with zeros in all arguments (or
    ones, for a divisor) is the device's, to be raised at a wait; one that stays is an error of the call.
    """
    for number in (0, 1):
        stand_ins: dict[int, TensorImpl] = {}
        blind = [_blind(arg, number, stand_ins) for arg in args]
        try:
            result = kernel(ks, *blind)
        except _ELEMENT_ERRORS:
            continue
        originals = zip(tensors(args), tensors(blind), strict=True)
        return True, _restored(result, {id(stand_in): original for original, stand_in in originals})
    return False, None


def _blind(arg: Any, number: int, stand_ins: dict[int, TensorImpl]) -> Any:
    if isinstance(arg, tuple | list):
        return tuple(_blind(each, number, stand_ins) for each in arg)
    if not isinstance(arg, TensorImpl):
        return arg
    found = stand_ins.get(id(arg))
    if found is None:
        found = TensorImpl.allocate(arg._shape, arg._stride, arg._dtype, arg._device)
        one = np.uint16(0x3F80) if arg._dtype is bfloat16 else 1
        found.strided_array()[...] = one if number else 0
        found._meta = arg._meta
        stand_ins[id(arg)] = found
    return found


def _restored(result: Any, originals: dict[int, TensorImpl]) -> Any:
    if isinstance(result, tuple | list):
        return tuple(_restored(each, originals) for each in result)
    return originals.get(id(result), result)
