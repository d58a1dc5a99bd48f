"""The checks of one entry and dtype: results, methods, in-place and out= forms, errors (gradients: see
gradients.py).
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch

from glassbox import mini
from glassbox.mini.c10.tensor_impl import TensorImpl

from . import database, gradients
from .compare import (
    aliasing_problem,
    flatten,
    is_tensor,
    largest,
    layout_problem,
    same_elements,
    value_problem,
)
from .database import Entry
from .ledger import Ledger
from .translate import Unsupported, for_mini, for_torch, leaves
from .variants import LAYOUTS, variant

# How many samples are tried by an entry's second names too.
ALIAS_SAMPLES = 4

Call = tuple[tuple[Any, ...], dict[str, Any]]


class Outcome:
    """What a call gave: its result or its exception, and its warnings."""

    def __init__(self, function: Callable[..., Any], call: Call, seed: Callable[[int], Any] | None) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                if seed:
                    seed(database.SEED)
                self.result = function(*call[0], **call[1])
            except Exception as error:  # noqa: BLE001 - whatever either side raises is what is compared
                self.error = error
        self.warned = any(issubclass(each.category, UserWarning) for each in caught)

    @property
    def error_name(self) -> str:
        return "" if self.error is None else type(self.error).__name__


def check(entry: Entry, dtype: torch.dtype, most: int | None, full: bool) -> Ledger:
    """All checks of an entry in a dtype on at most so many samples; full: each sample in every layout."""
    ledger = Ledger(entry.name)
    name = str(dtype).removeprefix("torch.")
    if dtype not in entry.info.dtypes:
        _refused_dtype(entry, dtype, ledger)
        return ledger
    found = database.samples(entry.info, dtype)
    layouts = tuple(LAYOUTS)
    for nr, sample in enumerate(database.picked(found, most)):
        call: Call = ((sample.input, *sample.args), sample.kwargs)
        try:
            for_mini(call)
        except Unsupported as reason:
            ledger.leave_out(str(reason))
            continue
        if nr < ALIAS_SAMPLES:
            _check_aliases(entry, call, f"{name} {_shown(call)}", ledger)
        for layout in ("plain", *(layouts if full else (layouts[nr % len(layouts)],))):
            _check_sample(entry, variant(call, layout), f"{name} {layout} {_shown(call)}", layout, ledger)
    if dtype is torch.float64 and entry.info.supports_autograd:
        gradients.check(entry, most, full, ledger)
    return ledger


def check_errors(entry: Entry) -> Ledger:
    """The samples that PyTorch refuses."""
    ledger = Ledger(entry.name)
    for bad in database.error_samples(entry.info):
        sample = bad.sample_input
        call: Call = ((sample.input, *sample.args), sample.kwargs)
        try:
            for_mini(call)
        except Unsupported as reason:
            ledger.leave_out(str(reason))
            continue
        _both(entry, entry.info.op, entry.function, call, f"error sample {_shown(call)}", ledger)
    return ledger


def _refused_dtype(entry: Entry, dtype: torch.dtype, ledger: Ledger) -> None:
    """A dtype that PyTorch does not have the operator for must be refused here too, where samples can be made."""
    try:
        found = database.samples(entry.info, dtype)
    except Exception:  # noqa: BLE001 - the entry makes no samples of such a dtype
        return
    name = str(dtype).removeprefix("torch.")
    for sample in database.picked(found, 4):
        call: Call = ((sample.input, *sample.args), sample.kwargs)
        try:
            for_mini(call)
        except Unsupported as reason:
            ledger.leave_out(str(reason))
            continue
        _both(entry, entry.info.op, entry.function, call, f"{name} {_shown(call)}", ledger)


def _check_aliases(entry: Entry, call: Call, where: str, ledger: Ledger) -> None:
    """The entry's second names, such as torch.multiply."""
    for alias in entry.info.aliases:
        function = None if alias.op is None else database.named(alias.name)
        if function is None:
            ledger.leave_out(f"second name not in mini: {alias.name}")
        else:
            _both(entry, alias.op, function, call, f"{alias.name}, {where}", ledger)


def _check_sample(entry: Entry, call: Call, where: str, layout: str, ledger: Ledger) -> None:
    info = entry.info
    expected = _both(entry, info.op, entry.function, call, where, ledger)
    if layout == "plain" and info.method_variant is not None:
        if entry.method is None:
            ledger.note("values", f"mini has no method {info.name}", where)
        else:
            _both(entry, info.method_variant, entry.method, call, f"method, {where}", ledger)
    if info.inplace_variant is not None:
        if entry.inplace is None:
            ledger.note("in-place", "mini has no in-place form", where)
        else:
            place = f"in-place, {where}"
            _both(entry, info.inplace_variant, entry.inplace, call, place, ledger, "in-place")
    if info.supports_out and expected is not None and layout in ("plain", "permuted"):
        _check_out(entry, call, expected, where, ledger)


def _both(
    entry: Entry,
    theirs: Callable[..., Any],
    ours: Callable[..., Any],
    call: Call,
    where: str,
    ledger: Ledger,
    kind: str = "",
) -> Outcome | None:
    """Run a call on both sides and compare; PyTorch's outcome where neither raised.

    kind: what the facts are counted under; "" for the kind of each.
    """
    seeded = entry.info.name in database.RANDOM
    their_call, our_call = for_torch(call), for_mini(call)
    their_inputs = list(leaves(their_call, torch.Tensor))
    our_inputs = list(leaves(our_call, TensorImpl))
    versions = [(t._version, m._version) for t, m in zip(their_inputs, our_inputs, strict=True)]
    expected = Outcome(theirs, their_call, torch.manual_seed if seeded else None)
    actual = Outcome(ours, our_call, mini.manual_seed if seeded else None)
    if expected.error or actual.error:
        problem = ""
        if expected.error_name != actual.error_name:
            problem = f"{_told(actual)} instead of {_told(expected)}"
        ledger.note("errors", problem, where)
        return None
    ledger.note("errors", "", where)
    wanted, found = flatten(expected.result), flatten(actual.result)
    if len(wanted) != len(found):
        ledger.note(kind or "layout", f"{len(found)} results instead of {len(wanted)}", where)
        return None
    scale = largest(their_inputs)
    for t, m in zip(wanted, found, strict=True):
        if not ledger.note(kind or "layout", layout_problem(t, m), where) and is_tensor(t) != is_tensor(m):
            continue
        rule = _rule(entry, call, t)
        if rule != "unset":
            ledger.note(kind or "values", _value_problem(entry, t, m, rule, scale, our_inputs), where)
        ledger.note(kind or "aliasing", aliasing_problem(t, m, their_inputs, our_inputs), where)
    for t, m, (t_before, m_before) in zip(their_inputs, our_inputs, versions, strict=True):
        changed = t._version - t_before
        counted = m._version - m_before
        problem = "" if changed == counted else f"version + {counted} instead of + {changed}"
        ledger.note(kind or "aliasing", problem, where)
        if changed and entry.rule != "unset":
            ledger.note(kind or "values", value_problem(t, m, _rule(entry, call, t), scale), f"written input, {where}")
    return expected


def _check_out(entry: Entry, call: Call, expected: Outcome, where: str, ledger: Ledger) -> None:
    results = flatten(expected.result)
    if not all(isinstance(each, torch.Tensor) for each in results):
        return
    results = [each.detach() for each in results]
    whole = {torch.float64: torch.int64, torch.float32: torch.int64, torch.bfloat16: torch.int64}
    scale = largest(list(leaves(call, torch.Tensor)))
    computed = str(results[0].dtype).removeprefix("torch.")
    cases = {
        "right": [torch.full_like(each, 1) for each in results],
        "strided": [torch.full((*each.shape, 2), 1, dtype=each.dtype)[..., 0] for each in results],
        "empty": [torch.empty(0, dtype=each.dtype) for each in results],
        "wrong shape": [torch.full((*each.shape, 2), 1, dtype=each.dtype) for each in results],
        "integral": [torch.full_like(each, 1, dtype=whole.get(each.dtype, torch.bool)) for each in results],
        "float64": [torch.full_like(each, 1, dtype=torch.float64) for each in results],
    }
    for case, outs in cases.items():
        out: Any = outs[0] if isinstance(expected.result, torch.Tensor) else tuple(outs)
        with_out: Call = (call[0], call[1] | {"out": out})
        their_call, our_call = for_torch(with_out), for_mini(with_out)
        seeded = entry.info.name in database.RANDOM
        theirs = Outcome(entry.info.op, their_call, torch.manual_seed if seeded else None)
        ours = Outcome(entry.function, our_call, mini.manual_seed if seeded else None)
        place = f"out {case}, {where}"
        if theirs.error or ours.error:
            problem = "" if theirs.error_name == ours.error_name else f"{_told(ours)} instead of {_told(theirs)}"
            ledger.note("out", problem, place)
            continue
        problem = "" if theirs.warned == ours.warned else f"{'no' if theirs.warned else 'a'} warning"
        ledger.note("out", problem, place)
        given = zip(flatten(their_call[1]["out"]), flatten(our_call[1]["out"]), strict=True)
        returned = zip(flatten(theirs.result), flatten(ours.result), strict=True)
        for (their_out, our_out), (their_result, our_result) in zip(given, returned, strict=True):
            same = (their_result is their_out) == (our_result is our_out)
            ledger.note("out", "" if same else "not the tensor that was given", place)
            ledger.note("out", layout_problem(their_out, our_out), place)
            if entry.rule != "unset":
                # A wider tensor takes the result no more exactly than it was computed.
                rule = _rule(entry, call, their_out)
                inputs = list(leaves(our_call, TensorImpl))
                problem = _value_problem(entry, their_out, our_out, rule, scale, inputs, computed)
                ledger.note("out", problem, place)


def _value_problem(
    entry: Entry, expected: Any, actual: Any, rule: str, scale: float, inputs: list[Any], computed: str = ""
) -> str:
    problem = value_problem(expected, actual, rule, scale, computed)
    if problem and entry.name in ("topk", "sort") and is_tensor(expected) and expected.dtype is torch.int64:
        # Which of several equal elements is named PyTorch leaves open: what counts is that equal ones are.
        return "" if same_elements(expected, actual, inputs[0]) else problem
    return problem


def _rule(entry: Entry, call: Call, result: Any = None) -> str:
    if "alpha" in call[1]:
        # PyTorch rounds once where its loop is vectorised, and twice in the loop's tail.
        return "sum"
    if entry.info.name == "arange" and result is not None and result.dtype is torch.bfloat16:
        # PyTorch rounds the first number of each vector first, so that the machine's width shows.
        return "ulp"
    return "sum" if call[1].get("max_norm") is not None else entry.rule


def _told(outcome: Outcome) -> str:
    return "nothing raised" if outcome.error is None else f"{outcome.error_name}({str(outcome.error)[:110]})"


def _shown(tree: Any) -> str:
    """A call in short: tensors by dtype and shape."""
    args, kwargs = tree
    parts = [_leaf_shown(arg) for arg in args] + [f"{key}={_leaf_shown(value)}" for key, value in kwargs.items()]
    return f"({', '.join(parts)})"


def _leaf_shown(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        return f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
    if isinstance(leaf, list | tuple) and any(isinstance(item, torch.Tensor) for item in leaf):
        return f"[{', '.join(map(_leaf_shown, leaf))}]"
    return repr(leaf)[:40]
