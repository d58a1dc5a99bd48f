"""Views and in-place writes in the graph (PyTorch: torch/csrc/autograd/variable.cpp, functions/tensor.cpp).

A write into a view changes its base too. The graph says so by giving the base a new grad_fn, CopySlices, that sends the
part of the gradient under the view through the op that wrote and the rest on as it was; every other view of the base
takes its grad_fn anew when it is asked for it (variable.refresh_view).
"""

from typing import Any

from ..c10 import inference_mode
from ..c10.grad_mode import grad_enabled
from .hooks import HookDict, NodeHooks, move_retained
from .node import Node
from .variable import gradient_edge, requires_grad, set_history

# How a view came about, where that forbids writing into it (PyTorch: CreationMeta).
NO_GRAD_MODE = "NO_GRAD_MODE"
MULTI_OUTPUT_NODE = "MULTI_OUTPUT_NODE"
INFERENCE_MODE = "INFERENCE_MODE"
IN_CUSTOM_FUNCTION = "IN_CUSTOM_FUNCTION"

_ADVICE = {
    NO_GRAD_MODE: (
        " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
        "both the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
        "tracked) or both outside (if you want the inplace to be tracked)."
    ),
    MULTI_OUTPUT_NODE: (
        " This view is the output of a function that returns multiple views. Such functions do not allow the output "
        "views to be modified inplace. You should replace the inplace operation by an out-of-place one."
    ),
    INFERENCE_MODE: " Autograd cannot follow that: make the view outside of inference mode.",
    IN_CUSTOM_FUNCTION: (
        " This view was created inside a custom Function (or because an input was returned as-is), and following the "
        "write would override that Function's own backward. You can fix this by cloning its output."
    ),
}


class AsStridedBackward0(Node):
    """A view seen from its base: the gradient goes back to the places that the view has in it."""

    __slots__ = ("base_geometry", "geometry")

    def __init__(self, view: Any) -> None:
        self.begin()
        base = view._base
        self.next_edges = (gradient_edge(base),)
        self.base_geometry = (base._shape, base._stride, base._offset)
        self.geometry = (view._shape, view._stride, view._offset)

    def apply(self, grad: Any) -> tuple[Any, ...]:
        if grad is None:
            return (None,)
        from .functions_manual import as_strided_backward

        return (as_strided_backward(grad, self.base_geometry, self.geometry),)

    _saved_size = property(lambda self: self.geometry[0])
    _saved_stride = property(lambda self: self.geometry[1])
    _saved_storage_offset = property(lambda self: self.geometry[2])


def hang_on_base(view: Any) -> None:
    """Give a view its history anew: it is now what its base is, seen as strided."""
    old, node = view._grad_fn, AsStridedBackward0(view)
    move_retained(view, old, node)
    set_history(view, node)


class CopySlices(Node):
    """The base's node after a write through a view."""

    __slots__ = ("base_geometry", "view_geometry", "fn")

    def __init__(self, base: Any, view: Any, fn: Node) -> None:
        self.begin()
        self.base_geometry = (base._shape, base._stride, base._offset)
        self.view_geometry = (view._shape, view._stride, view._offset)
        self.fn: Node | None = fn
        # The view itself now hangs on the base, so the op's own edges are this node's, with the base's in front.
        self.next_edges = (gradient_edge(base), *fn.next_edges[1:])
        self.input_metadata = ((base._shape, base._dtype, base._device),)

    def apply(self, grad: Any) -> tuple[Any, ...]:
        if grad is None:
            return (None,) * len(self.next_edges)
        if self.fn is None:
            from .saved_variable import FREED

            raise RuntimeError(FREED)
        from .functions_manual import copy_slices_backward

        return copy_slices_backward(grad, self.base_geometry, self.view_geometry, self.fn, self.next_edges)

    def release_variables(self) -> None:
        self.fn = None


class AutogradMeta:
    """What few tensors have: hooks before there is a node to hang them on, a view's creation, a name."""

    __slots__ = ("creation", "name", "tensor_pre", "after_accumulate", "is_parameter", "attributes")

    def __init__(self) -> None:
        self.creation: str | None = None
        self.name: str | None = None
        self.tensor_pre: HookDict = {}
        self.after_accumulate: HookDict = {}
        self.is_parameter = False
        self.attributes: dict[str, Any] | None = None

    def attach(self, node: Node) -> None:
        """Hang a leaf's hooks on its AccumulateGrad."""
        if self.tensor_pre or self.after_accumulate:
            hooks = NodeHooks.of(node)
            hooks.tensor_pre[0] = self.tensor_pre
            hooks.after_accumulate = self.after_accumulate


def meta_of(tensor: Any) -> AutogradMeta:
    """The tensor's AutogradMeta, made at first use."""
    meta = tensor._meta
    if not isinstance(meta, AutogradMeta) or meta is _CREATED.get(meta.creation):
        own = tensor._meta = AutogradMeta()
        own.creation = creation_of_meta(meta)
        return own
    return meta


def creation_of_meta(meta: Any) -> str | None:
    """The creation that a tensor's meta tells of."""
    return meta.creation if isinstance(meta, AutogradMeta) else None


def _created(how: str) -> AutogradMeta:
    meta = AutogradMeta()
    meta.creation = how
    return meta


# Most views have no more to tell than how they came about: these stand for all of one kind (see meta_of).
_CREATED: dict[str | None, AutogradMeta] = {
    how: _created(how) for how in (NO_GRAD_MODE, MULTI_OUTPUT_NODE, INFERENCE_MODE, IN_CUSTOM_FUNCTION)
}


def created(how: str) -> AutogradMeta:
    """The meta of a view that has no more to tell than how it came about."""
    return _CREATED[how]


def inherit_creation(base: Any, view: Any) -> None:
    """What forbids writing into a view forbids it for a view of that view."""
    creation = creation_of_meta(base._meta)
    if creation is not None:
        view._meta = _CREATED[creation]


def creation_of_several() -> str:
    """How a view that is made now, by an op that gives more than one, comes about."""
    if inference_mode.blocks[0] and inference_mode.is_enabled():
        return INFERENCE_MODE
    if not grad_enabled.get():
        return NO_GRAD_MODE
    return MULTI_OUTPUT_NODE


def as_view(base: Any, view: Any, creation: str) -> None:
    """Write down that `view` is a view of `base`, and how it came about."""
    view._base = base if base._base is None else base._base
    view._attr_version = base._version_counter[0]
    view._meta = _CREATED[creation]


def count_change(tensor: Any) -> None:
    """One in-place change more; RuntimeError for an inference tensor, whose changes nobody could notice."""
    counter = tensor._version_counter
    if counter is not None:
        counter[0] += 1
    elif not inference_mode.is_enabled():
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update."
        )


def check_inplace(tensor: Any) -> None:
    """RuntimeError where autograd could not follow a write into `tensor`."""
    base = tensor._base
    if base is not None:
        handle_view_on_rebase(tensor)
        if base._grad_fn is None and requires_grad(tensor):
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    # PyTorch asks for the grad_fn as it was last seen, too.
    if tensor._grad_fn is None and requires_grad(tensor):
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def handle_view_on_rebase(view: Any, indirect: bool = False) -> None:
    """RuntimeError where a view must not be written to; indirect: its base, or another view of that, was."""
    creation = creation_of_meta(view._meta)
    if creation is None:
        return
    modified = "its base or another view of its base has been" if indirect else "is being"
    if view._grad_fn is not None:
        text = f"Output {view._output_nr} of {view._grad_fn.name()} is a view and {modified} modified inplace."
    elif creation == INFERENCE_MODE:
        text = f"A view was created in inference mode and {modified} modified inplace in normal mode."
    else:
        text = f"A view was created in no_grad mode and {modified} modified inplace with grad mode enabled."
    raise RuntimeError(text + _ADVICE[creation])


def rebase_history(tensor: Any, node: Node) -> None:
    """`tensor` was written to by the op of `node`: that is its history now, and a part of its base's."""
    if not tensor._dtype.is_floating_point:
        return
    base = tensor._base
    if base is None:
        if tensor._grad_fn is not None:
            move_retained(tensor, tensor._grad_fn, node)
        set_history(tensor, node)
        return
    if node.n_outputs != 1:
        raise RuntimeError("Functions which modify views in-place must return a single Variable")
    node.input_metadata = ((tensor._shape, tensor._dtype, tensor._device),)
    copy_slices = CopySlices(base, tensor, node)
    move_retained(base, base._grad_fn, copy_slices)
    set_history(base, copy_slices)
    hang_on_base(tensor)
    tensor._attr_version = tensor._version_counter[0]
