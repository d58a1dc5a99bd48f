"""Lifetimes: a program run line by line, and after each line who keeps which storage (c10/core/StorageImpl.h).

Storages are followed by weak references, so that the looking keeps none of them alive. What is freed is what the
framework itself freed, and the counts are its own.
"""

from __future__ import annotations

import ast
import importlib
import sys
import weakref
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from ..records.lifetime import Lifetime, LiveStorage, LiveTensor, Moment
from . import _torch_internals as internals
from ._clean_thread import in_clean_thread
from .storage import use_count


def lifetime(program: str, framework: Any = None) -> Lifetime:
    """Runs the statements of `program` one by one and gives what is alive after each.

    program     Python text. It meets the name `torch`, and `mini` too where that is the framework; variables that it
                makes are its own. Tensors are found in its variables, in lists, tuples and dicts there, as `_base` of
                views, and among the values that nodes of the autograd graph keep.
    framework   the module that goes by the name `torch`: torch itself (which None means) or glassbox.mini

    It runs in a thread of its own: what is switched on around the call does not count, and what the program switches
    on or off for its thread, such as grad mode, is not left so.

    TypeError for a program that is no text and for another framework; SyntaxError for what is no Python; whatever a
    statement raises is raised.
    """
    if framework is None:
        framework = importlib.import_module("torch")
    if not isinstance(program, str):
        raise TypeError(f"lifetime: the program is Python text, such as 'x = torch.ones(2)', got {program!r}.")
    if not isinstance(framework, ModuleType) or framework.__name__ not in ("torch", "glassbox.mini"):
        raise TypeError(f"lifetime: the framework is the module torch or glassbox.mini, got {framework!r}.")
    return in_clean_thread(lambda: _lived(program, framework))


def _lived(program: str, framework: ModuleType) -> Lifetime:
    watch = _TorchWatch() if framework.__name__ == "torch" else _MiniWatch()
    space: dict[str, Any] = {"torch": framework, "__builtins__": __builtins__}
    given = set(space)
    moments = []
    for statement in ast.parse(program).body:
        exec(compile(ast.Module([statement], []), "<lifetime>", "exec"), space)
        code = ast.get_source_segment(program, statement) or ast.unparse(statement)
        moments.append(watch.moment(code, ((name, value) for name, value in space.items() if name not in given)))
    return Lifetime("PyTorch" if framework.__name__ == "torch" else "mini", tuple(moments))


class _Watch:
    """What has been seen so far: weak references to storages, and the tensors of the moment before."""

    def __init__(self) -> None:
        self._storages: list[tuple[Any, int]] = []
        self._before: dict[int, LiveTensor] = {}
        self._made = 0

    def moment(self, code: str, variables: Iterable[tuple[str, Any]]) -> Moment:
        names: dict[int, list[str]] = {}
        tensors: dict[int, Any] = {}
        handles: dict[int, list[str]] = {}
        for name, value in _flat(variables):
            if self.is_tensor(value):
                tensors.setdefault(id(value), value)
                names.setdefault(id(value), []).append(name)
            elif self.is_storage(value):
                handles.setdefault(self._number(value), []).append(name)
        # The mini-framework's count would have this reference in it.
        value = None
        holders = self._reached(tensors)
        found = self._tensors(tensors, names, holders)
        return Moment(code, tuple(found), tuple(self._counted(tensors, handles)))

    def _reached(self, tensors: dict[int, Any]) -> dict[int, list[tuple[str, str]]]:
        """Adds what views and nodes hold to the tensors; who holds each, besides names and views."""
        holders: dict[int, list[tuple[str, str]]] = {}
        waiting, nodes = list(tensors.values()), set()
        while waiting:
            tensor = waiting.pop(0)
            kept = [("", "", internals.base_of(tensor))]
            graph = [tensor.grad_fn] if tensor.grad_fn is not None else []
            while graph:
                node = graph.pop()
                if node in nodes:
                    continue
                nodes.add(node)
                graph += [to for to, _ in node.next_functions if to is not None]
                label = str(node.name()).rpartition("::")[2]
                kept += [(label, name, value) for name, value in self.saved(node)]
                kept.append((label, "variable", getattr(node, "variable", None)))
            for label, name, value in kept:
                if value is None:
                    continue
                if id(value) not in tensors:
                    tensors[id(value)] = value
                    waiting.append(value)
                if label:
                    holders.setdefault(id(value), []).append((label, name))
        return holders

    def _tensors(
        self, tensors: dict[int, Any], names: dict[int, list[str]], holders: dict[int, list[tuple[str, str]]]
    ) -> Iterator[LiveTensor]:
        numbers, known = {}, {}
        for key, tensor in tensors.items():
            storage, shape = self._number(tensor.untyped_storage()), tuple(int(n) for n in tensor.shape)
            before = self._before.get(key)
            # An address may be given to another tensor; one over the same storage with the same shape is taken for it.
            same = before is not None and (before.storage, before.shape) == (storage, shape)
            numbers[key] = before.nr if same and before is not None else self._made
            self._made += numbers[key] == self._made
            known[key] = (storage, shape, before.label if same and before is not None else "")
        for key, tensor in tensors.items():
            storage, shape, label = known[key]
            base = internals.base_of(tensor)
            views = [names[k][0] for k, t in tensors.items() if k in names and internals.base_of(t) is tensor]
            label = label or names.get(key, [""])[0] or (f"base of {views[0]}" if views else "")
            known[key] = (storage, shape, label)
            yield LiveTensor(
                numbers[key],
                label,
                tuple(names.get(key, ())),
                shape,
                storage,
                None if base is None else numbers.get(id(base)),
                tuple(holders.get(key, ())),
            )
        self._before = {
            key: LiveTensor(numbers[key], label, (), shape, storage) for key, (storage, shape, label) in known.items()
        }

    def _number(self, storage: Any) -> int:
        for nr, (weak, _) in enumerate(self._storages):
            if self.is_the(weak, storage):
                return nr
        self._storages.append((self.weakly(storage), int(storage.nbytes())))
        return len(self._storages) - 1

    def _counted(self, tensors: dict[int, Any], held: dict[int, list[str]]) -> Iterator[LiveStorage]:
        counts: dict[int, int] = {}
        for tensor in tensors.values():
            storage = tensor.untyped_storage()
            nr = self._number(storage)
            del storage
            if nr not in counts:
                counts[nr] = self.count(tensor) + (nr in held and self.one_wrapper)
        for nr, names in held.items():
            counts.setdefault(nr, 1 if self.one_wrapper else len(names))
        for nr, (weak, nbytes) in enumerate(self._storages):
            gone = nr not in counts and self.gone(weak)
            count = 0 if gone else counts.get(nr, 1)
            yield LiveStorage(nr, nbytes, count, tuple(held.get(nr, ())))

    # What the two frameworks do in their own ways. one_wrapper: all names of a storage hold one wrapper object, which
    # is one reference, and by which use_count asks as well.
    one_wrapper = True

    def is_tensor(self, value: Any) -> bool:
        raise NotImplementedError

    def is_storage(self, value: Any) -> bool:
        raise NotImplementedError

    def saved(self, node: Any) -> Iterator[tuple[str, Any]]:
        raise NotImplementedError

    def weakly(self, storage: Any) -> Any:
        raise NotImplementedError

    def is_the(self, weak: Any, storage: Any) -> bool:
        raise NotImplementedError

    def gone(self, weak: Any) -> bool:
        raise NotImplementedError

    def count(self, tensor: Any) -> int:
        """References to the tensor's storage, less the one by which is asked."""
        return use_count(tensor) - 1


class _TorchWatch(_Watch):
    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, sys.modules["torch"].Tensor)

    def is_storage(self, value: Any) -> bool:
        return isinstance(value, sys.modules["torch"].UntypedStorage)

    def saved(self, node: Any) -> Iterator[tuple[str, Any]]:
        from ._torch_internals import graph as inside

        for name, saved in inside.raw_saved(node):
            value, packed = inside.content(saved) if saved is not None else (None, False)
            if value is not None and not packed:
                yield name, value

    def weakly(self, storage: Any) -> Any:
        from torch.multiprocessing.reductions import StorageWeakRef

        return StorageWeakRef(storage)

    def is_the(self, weak: Any, storage: Any) -> bool:
        return not weak.expired() and weak.cdata == internals.storage_identity(storage)

    def gone(self, weak: Any) -> bool:
        return bool(weak.expired())


class _MiniWatch(_Watch):
    one_wrapper = False

    def is_tensor(self, value: Any) -> bool:
        from ..mini.tensor import Tensor

        return isinstance(value, Tensor)

    def is_storage(self, value: Any) -> bool:
        from ..mini.c10.storage import Storage

        return isinstance(value, Storage)

    def saved(self, node: Any) -> Iterator[tuple[str, Any]]:
        for name in dir(type(node)):
            saved = getattr(node, name, None) if name.startswith("_raw_saved_") else None
            value = getattr(saved, "tensor", None)
            if self.is_tensor(value):
                yield name.removeprefix("_raw_saved_"), value

    def weakly(self, storage: Any) -> Any:
        return weakref.ref(storage)

    def is_the(self, weak: Any, storage: Any) -> bool:
        return weak() is storage

    def gone(self, weak: Any) -> bool:
        return weak() is None


def _flat(variables: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Variables and what stands in lists, tuples and dicts among them, as ("parts[0]", value)."""
    for name, value in variables:
        if isinstance(value, (list, tuple)):
            yield from _flat([(f"{name}[{nr}]", each) for nr, each in enumerate(value)])
        elif isinstance(value, dict):
            yield from _flat([(f"{name}[{key!r}]", each) for key, each in value.items()])
        else:
            yield name, value
