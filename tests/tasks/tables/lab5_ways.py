"""Lab 5: other ways of thinking than the solutions' own, some right and some short cuts."""

import re
import sys
from collections import Counter

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

LETTERS = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.bool: "b8"}
LETTERS |= {torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8"}


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return (
        [each for part in value for each in _tensors(part)]
        if hasattr(value, "__iter__") and type(value) is not str
        else []
    )


def _type(tensor):
    return f"{LETTERS[tensor.dtype]}{[*tensor.shape]}"


def _looking(kind, look, run):
    """Runs it under a mode that calls look(func, args, kwargs, make), which returns the result."""

    class Mode(kind):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return look(func, args, kwargs or {}, lambda: func(*args, **(kwargs or {})))

        def __torch_function__(self, func, types, args=(), kwargs=None):
            return look(func, args, kwargs or {}, lambda: func(*args, **(kwargs or {})))

    with Mode():
        return run()


def _line():
    frame = sys._getframe()
    while frame.f_code.co_filename != "<program>":
        frame = frame.f_back
    return frame.f_lineno


def op_lines__own_recursion(program):
    lines = []

    def look(func, args, kwargs, make):
        words = [str(func), *map(_type, _tensors([*args, *kwargs.values()])), "->"]
        result = make()
        lines.append(" ".join(words + list(map(_type, _tensors([result])))))
        return result

    _looking(TorchDispatchMode, look, program)
    return lines


def op_lines__functions(program):
    """What Python called, above all that PyTorch takes apart."""
    lines = []

    def look(func, args, kwargs, make):
        words = [
            f"aten.{getattr(func, '__name__', func)}.default",
            *map(_type, _tensors([*args, *kwargs.values()])),
            "->",
        ]
        result = make()
        lines.append(" ".join(words + list(map(_type, _tensors([result])))))
        return result

    _looking(TorchFunctionMode, look, program)
    return lines


def portrait__by_counter(model, x):
    calls, flops = Counter(), Counter()

    def look(func, args, kwargs, make):
        result = make()
        name = str(func)
        calls[name] += 1
        base = name.split(".")[1]
        if base in ("mm", "bmm", "addmm", "baddbmm"):
            a, b = [each for each in args if isinstance(each, torch.Tensor)][-2:]
            flops[name] += 2 * a.numel() * b.shape[-1]
        if base == "convolution":
            flops[name] += 2 * result.numel() * args[1].numel() // args[1].shape[0]
        return result

    _looking(TorchDispatchMode, look, lambda: model(x))
    return [(name, count, flops[name]) for name, count in calls.most_common()]


def portrait__layers(model, x):
    """Counts layers, not operators."""
    calls = Counter(type(each).__name__ for each in model.modules())
    return [(f"aten.{name.lower()}.default", count, 0) for name, count in calls.most_common()]


def watch_layer__forward_replaced(model, x, path):
    """Right: stands in for forward instead of hanging on a hook."""
    layer, calls = model.get_submodule(path), []
    forward = layer.forward

    def watched(*args, **kwargs):
        output = forward(*args, **kwargs)
        row = []
        for tensor in _tensors([output]):
            values = tensor.detach().to(torch.float64)
            finite = values[torch.isfinite(values)]
            known = finite.numel() > 0
            mean = finite.mean().item() if known else None
            spread = finite.var(correction=0).sqrt().item() if known else None
            row.append((tensor.shape, mean, spread, values.isnan().any().item()))
        calls.append(row)
        return output

    layer.forward = watched
    error = None
    try:
        model(x)
    except Exception as raised:
        error = type(raised).__name__
    del layer.forward
    return calls, error


def who_shares__pair_by_pair(tensors):
    groups = []
    for name, tensor in tensors.items():
        for group in groups:
            if tensors[group[0]].untyped_storage()._cdata == tensor.untyped_storage()._cdata:
                group.append(name)
                break
        else:
            groups.append([name])
    return [(group, tensors[group[0]].untyped_storage().nbytes()) for group in groups]


def who_shares__by_writing(tensors):
    """Writes to one and looks which others change: overlap, not storage."""
    groups = []
    for name, tensor in tensors.items():
        for group in groups:
            other = tensors[group[0]]
            before = other.detach().clone()
            if tensor.numel() and other.numel() and not tensor.is_meta and not other.is_meta:
                tensor.detach().fill_(77)
                if not torch.equal(before, other.detach()):
                    group.append(name)
                    break
        else:
            groups.append([name])
    return [(group, tensors[group[0]].untyped_storage().nbytes()) for group in groups]


def hidden_copies__from_the_text(program, text):
    """Lists the lines that call reshape and the like, without looking."""
    lines = enumerate(text.splitlines(), 1)
    return [
        (number, "aten.clone.default", 1, 96) for number, line in lines if re.search(r"\.(reshape|flatten)\(", line)
    ]


def hidden_copies__by_storage(program, text):
    """Right: whatever gives the same elements in another storage."""
    rows, source = {}, text.splitlines()

    def look(func, args, kwargs, make):
        result = make()
        if func.overloadpacket._qualified_op_name in ("aten::clone", "aten::_to_copy", "aten::copy_"):
            number = _line()
            if not re.search(r"\.(clone|contiguous|copy_|to|float|double)\(", source[number - 1]):
                rows.setdefault((number, str(func)), []).append(result.nbytes)
        return result

    _looking(TorchDispatchMode, look, program)
    return sorted((*key, len(sizes), sum(sizes)) for key, sizes in rows.items())


def repeated_work__same_result(program):
    """Looks for equal results."""
    first, found = {}, []

    def look(func, args, kwargs, make):
        result = make()
        if isinstance(result, torch.Tensor) and _tensors(args):
            key = str(func), str(result.tolist())
            line = first.setdefault(key, _line())
            if line != _line():
                found.append((_line(), line))
        return result

    _looking(TorchDispatchMode, look, program)
    return found


def repeated_work__same_arguments(program):
    """Compares the tensors as Python objects, alive or not."""
    first, found = {}, []

    def look(func, args, kwargs, make):
        key = str(func), str([id(each) if isinstance(each, torch.Tensor) else each for each in args])
        result = make()
        if _tensors(args):
            line = first.setdefault(key, _line())
            if line != _line():
                found.append((_line(), line))
        return result

    _looking(TorchDispatchMode, look, program)
    return found


def repeated_work__by_the_oracle(program):
    """Hands the program's own text to what tells right from wrong, should the text be in reach."""
    from glassbox.tasks.lab5 import repeating

    return repeating._true_repeated_work(program.__globals__["text"])


def float64_sources__by_the_oracle(program):
    from glassbox.tasks.lab5 import creeping

    return creeping._true_float64_sources(program.__globals__["text"])


def float64_sources__by_storage(program):
    """Right: known are the storages of float64 tensors that came out; the tensors stay alive."""
    known, found = [], {}

    def wide(value):
        return [each for each in _tensors([value]) if each.dtype == torch.float64]

    def look(func, args, kwargs, make):
        went_in = {id(each) for each in wide([*args, *kwargs.values()])}
        result = make()
        if wide(result) and not any(id(each) in went_in for each in known):
            found[_line(), str(func)] = None
        known.extend(wide(result))
        return result

    _looking(TorchDispatchMode, look, program)
    return list(found)


def float64_sources__casts(program):
    """Every cast and factory that was told float64."""
    found = {}

    def look(func, args, kwargs, make):
        if kwargs.get("dtype") == torch.float64:
            found[_line(), str(func)] = None
        return make()

    _looking(TorchDispatchMode, look, program)
    return list(found)


def run_within__afterwards(program, budget):
    """Lets it run to the end, and then says where it should have been stopped."""
    calls = []

    def look(func, args, kwargs, make):
        if not func.is_view:
            calls.append((str(func), _line()))
        return make()

    _looking(TorchDispatchMode, look, program)
    return ("stopped", budget, *calls[budget]) if len(calls) > budget else ("done", len(calls))


def run_within__by_schema(program, budget):
    """Right: asks the schema itself what is a view."""

    class Stop(BaseException):
        pass

    done, refused = [], []

    def look(func, args, kwargs, make):
        aliases = [each.alias_info for each in func._schema.arguments if each.alias_info is not None]
        if not aliases or any(alias.is_write for alias in aliases):
            if len(done) >= budget:
                refused.append((str(func), _line()))
                raise Stop
            done.append(func)
        return make()

    try:
        _looking(TorchDispatchMode, look, program)
    except Stop:
        return ("stopped", len(done), *refused[0])
    return "done", len(done)


def shapes_only__on_meta(program, inputs):
    """Meta tensors without a subclass: they say that they are."""
    try:
        with torch.device("meta"):
            result = program(*(torch.empty(shape, dtype=getattr(torch, dtype)) for dtype, shape in inputs))
    except (RuntimeError, NotImplementedError):
        return "needs data", "aten._local_scalar_dense.default"
    return "fine", _type(result)


def shapes_only__small(program, inputs):
    """Runs it on small tensors and puts the sizes back."""
    (_, (rows, columns)), (_, (_, wide)) = inputs
    small = {5: rows, 6: columns, 7: wide}
    try:
        result = program(torch.rand(5, 6), torch.rand(6, 7))
    except RuntimeError:
        return "needs data", "aten._local_scalar_dense.default"
    return "fine", f"{LETTERS[result.dtype]}{[small.get(size, size) for size in result.shape]}"


RIGHT = [
    ("op_lines", "own recursion", op_lines__own_recursion),
    ("portrait", "by counter", portrait__by_counter),
    ("watch_layer", "forward replaced", watch_layer__forward_replaced),
    ("who_shares", "pair by pair", who_shares__pair_by_pair),
    ("hidden_copies", "by packet", hidden_copies__by_storage),
    ("float64_sources", "by identity", float64_sources__by_storage),
    ("run_within", "by schema", run_within__by_schema),
]

WRONG = [
    ("op_lines", "functions", op_lines__functions),
    ("portrait", "layers", portrait__layers),
    ("who_shares", "by writing", who_shares__by_writing),
    ("hidden_copies", "from the text", hidden_copies__from_the_text),
    ("repeated_work", "same result", repeated_work__same_result),
    ("repeated_work", "same arguments", repeated_work__same_arguments),
    ("repeated_work", "by the oracle", repeated_work__by_the_oracle),
    ("float64_sources", "casts", float64_sources__casts),
    ("float64_sources", "by the oracle", float64_sources__by_the_oracle),
    ("run_within", "afterwards", run_within__afterwards),
    ("shapes_only", "on meta", shapes_only__on_meta),
    ("shapes_only", "small", shapes_only__small),
]
