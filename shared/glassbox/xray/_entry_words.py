"""native_functions.yaml in words: what each line means to the generator (aten/src/ATen/native/README.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

TAG_NOTES = {
    "core": "part of the core ATen operators, to which exported programs are reduced",
    "pointwise": "each element of the result depends on one element of each input, after broadcasting",
    "inplace_view": "changes only the metadata of its argument",
    "view_copy": "does what a view does, and copies",
    "dynamic_output_shape": "the result's shape depends on values",
    "data_dependent_output": "the result that is no tensor depends on values, so it cannot be traced",
    "generated": "made by the generator, without an entry",
    "nondeterministic_seeded": "random: a seeded generator gives the same again",
    "nondeterministic_bitwise": "may differ in the last bits from run to run",
    "needs_exact_strides": "a compiler must hand it the strides that eager mode would",
    "needs_contiguous_strides": "a compiler must hand it contiguous tensors",
    "needs_fixed_stride_order": "a compiler must keep the order of its inputs' strides",
    "flexible_layout": "a compiler may choose the strides of its inputs",
    "pt2_compliant_tag": "known to work under torch.compile and torch.export",
    "maybe_aliasing_or_mutating": "may alias or write to arguments without the schema saying so",
    "reduction": "reduces dimensions",
    "cudagraph_unsafe": "cannot be captured in a CUDA graph",
    "out": "an out variant",
}

_FIELDS = {
    "structured": "shape, dtype and strides of the result are worked out by one meta function for all backends; each "
    "backend only computes",
    "structured_inherits": "the meta function builds this class, which allocates the result and runs the loop",
    "device_check": "whether the generated code checks that all tensors are on one device; NoCheck leaves that open",
    "device_guard": "whether the generated code makes the arguments' device the current one first",
    "python_module": "where Python shows it: nn is torch._C._nn, linalg torch.linalg, special torch.special",
    "autogen": "operators that the generator makes from this one",
    "manual_cpp_binding": "its C++ function is written by hand",
    "manual_kernel_registration": "its kernels are registered by hand",
    "cpp_no_default_args": "arguments whose default C++ does not have, so that overloads stay apart",
    "category_override": "how the generator groups it, where its name misleads",
    "use_const_ref_for_mutable_tensors": "a detail of the C++ signature: const Tensor& also where it is written to",
    "precomputed": "values that the meta function works out once and hands to the kernels",
    "ufunc_inner_loop": "the generator writes the kernels of CPU and CUDA itself, around this function for one "
    "element; the dtypes are in the brackets",
}
_KEYS = {
    "CompositeImplicitAutograd": "it calls other operators: serves every backend, and autograd sees those others",
    "CompositeExplicitAutograd": "one kernel for every backend; its derivative must be given",
    "CompositeExplicitAutogradNonFunctional": "one kernel for every backend that may have in-place calls below",
    "CompositeImplicitAutogradNestedTensor": "nested tensors only: it calls other operators",
}


def kind_of(entry: Mapping[str, Any]) -> str:
    """What the generator makes of an entry: see NativeFunction.kind."""
    if entry.get("structured"):
        return "structured"
    if "structured_delegate" in entry:
        return "delegates"
    if "dispatch" in entry and not entry["dispatch"]:
        return "no kernel"
    keys = [key.strip() for keys in entry.get("dispatch", {}) for key in keys.split(",")]
    if "CompositeImplicitAutograd" in keys or not keys:
        return "composite implicit"
    if any(key.startswith("CompositeExplicitAutograd") for key in keys):
        return "composite explicit"
    return "backends"


def entry_notes(name: str, entry: Mapping[str, Any], derived: bool) -> tuple[tuple[str, str], ...]:
    """(part, in words) for what an entry says and for what follows from what it does not say."""
    return tuple(_notes(name, entry, kind_of(entry), derived))


def _notes(name: str, entry: Mapping[str, Any], kind: str, derived: bool) -> Iterator[tuple[str, str]]:
    base = name.partition(".")[0]
    variants = str(entry.get("variants", "function"))
    for key, words in _FIELDS.items():
        if key in entry:
            yield key, words
    if "variants" in entry:
        shown = [f"torch.{base}(...)"] if "function" in variants else []
        shown += ["tensor." + base + "(...)"] if "method" in variants else []
        yield "variants", "in Python as " + " and ".join(shown)
    if "structured_delegate" in entry:
        yield "structured_delegate", f"its kernels are made from {entry['structured_delegate']}'s: same meta, same loop"
    if "tags" in entry:
        tags = entry["tags"] if isinstance(entry["tags"], list) else [entry["tags"]]
        yield "tags", "; ".join(f"{tag}: {TAG_NOTES.get(tag, 'not known here')}" for tag in tags)
    for keys, kernel in entry.get("dispatch", {}).items():
        words = _KEYS.get(keys, f"at::native::{kernel} is registered to {keys}")
        yield f"dispatch {kernel}", words
    yield "so", _conclusion(name, entry, kind, derived)


def _conclusion(name: str, entry: Mapping[str, Any], kind: str, derived: bool) -> str:
    """What the generator makes of it, in a sentence or two."""
    formula = (
        "Its derivative is in derivatives.yaml, so VariableType gets a kernel that records a node."
        if derived
        else "It has no entry in derivatives.yaml."
    )
    if kind == "structured":
        return (
            "For each backend in dispatch or ufunc_inner_loop the generator writes the out kernel around a function "
            "that only computes; functional and in-place variants delegate to this entry."
        )
    if kind == "delegates":
        return (
            f"The generator writes the kernels of {name} for every backend of {entry['structured_delegate']}, and one "
            f"for CompositeExplicitAutogradNonFunctional that serves the other backends through it. {formula}"
        )
    if kind == "composite implicit":
        how = "dispatch names CompositeImplicitAutograd" if "dispatch" in entry else "There is no dispatch line"
        return (
            f"{how}, so its C++ function is registered to CompositeImplicitAutograd: it runs on every backend, calls "
            f"other operators, and autograd records those. {'' if not derived else formula}".strip()
        )
    if kind == "no kernel":
        return (
            f"Its dispatch line is empty: the generator registers no kernel, and others do, from Python too. {formula}"
        )
    if kind == "composite explicit":
        return f"One kernel serves every backend that has none of its own, below autograd. {formula}"
    return f"Only the backends in dispatch have kernels; any other fails. {formula}"
