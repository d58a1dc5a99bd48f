"""Lab 1: its points, learners' slips, other ways of thinking, and what is no thought at all."""

import math

from glassbox.mini.c10 import layout

from .lab1_ways import RIGHT, WRONG

POINTS = {
    "contiguous_strides": 4,
    "address": 4,
    "is_contiguous": 6,
    "permute": 5,
    "slice_view": 8,
    "expand": 7,
    "view_strides": 10,
    "reshape": 6,
    "unfold": 9,
    "diagonal": 9,
    "channels_last_strides": 8,
    "aliased_indices": 11,
    "view_dtype": 13,
}
CORE = 8
WRITTEN = "written_view_or_reshape"
READ = "notebook 01, "
CALLS = {"reshape": ("contiguous_strides", "view_strides")}

# Words that no function and no class outside the tasks may have in its name, lest it be an extension's answer.
TELLING = ("unfold", "diagonal", "channels_last", "aliased", "alias_of", "view_dtype", "sliding")
# Modules each function of which is tried on the extensions.
NEAR = (layout,)

# (function, kind of an answer, least share in every property of the answers for which that is true, and of the others)
SHARES = [
    ("is_contiguous", bool, 0.3),
    ("view_strides", lambda value: value is None, 0.2),
    ("reshape", lambda value: value[2], 0.2),
]


def _dense(shape):
    return tuple(math.prod(max(size, 1) for size in shape[dim + 1 :]) for dim in range(len(shape)))


def _dense_of(at):
    return lambda *args: _dense([arg for arg in args if isinstance(arg, tuple)][at])


TRIVIAL = {
    **{f"fresh strides of tuple {at}": _dense_of(at) for at in (0, 1, 2, -1)},
    "shape and fresh strides": lambda *args: (args[0], _dense(args[0])),
    "shape, fresh strides, offset": lambda *args: (args[0], _dense(args[0]), args[2]),
    "last argument, fresh strides, a copy": lambda *args: (args[-1], _dense(args[-1]), True),
    "last argument, fresh strides, a view": lambda *args: (args[-1], _dense(args[-1]), False),
    "0 is in the first": lambda *args: 0 in args[0],
    "strides descend": lambda *args: list(args[1]) == sorted(args[1], reverse=True),
}
# Where a line of thought is the task itself, it is no trivial function.
RIGHT_THERE = {("contiguous_strides", f"fresh strides of tuple {at}") for at in (0, -1)}


MATCHED_FROM_THE_RIGHT = (
    "zip(shape, stride, size[new:])",
    "zip(shape[max(-new, 0) :], stride[max(-new, 0) :], size[max(new, 0) :])",
)

WITH_PROD = ("    if itemsize == new", "    from math import prod\n    if itemsize == new")

# (name of the function, what the slip is, then pairs: text of the solution, text with the slip)
SLIPS = [
    ("contiguous_strides", "from the left", "in reversed(shape)", "in shape"),
    ("contiguous_strides", "not turned round", "tuple(reversed(strides))", "tuple(strides)"),
    ("contiguous_strides", "0 in the product", "max(size, 1)", "size"),
    (
        "contiguous_strides",
        "its own size taken in",
        "strides.append(step)\n        step *= max(size, 1)",
        "step *= max(size, 1)\n        strides.append(step)",
    ),
    ("contiguous_strides", "the neighbour's size only", "step *= max", "step = max"),
    ("contiguous_strides", "in bytes", "step = 1", "step = 4"),
    ("contiguous_strides", "size 1 gets stride 0", "append(step)", "append(step if size != 1 else 0)"),
    (
        "contiguous_strides",
        "0-d has one stride",
        "return tuple(reversed(strides))",
        "return tuple(reversed(strides or [1]))",
    ),
    ("address", "offset forgotten", "cell = offset", "cell = 0"),
    ("address", "negative used as it is", "(i % size) * step", "i * step"),
    ("address", "-size refused", "-size <= i", "-size < i"),
    ("address", "size accepted", "i < size", "i <= size"),
    ("address", "negative refused", "-size <= i", "0 <= i"),
    ("address", "missing indices accepted", "len(index) != len(shape)", "len(index) > len(shape)"),
    ("address", "extra indices accepted", "len(index) != len(shape)", "len(index) < len(shape)"),
    ("address", "fresh strides", "zip(index, shape, stride)", "zip(index, shape, contiguous_strides(shape))"),
    ("address", "another error", "IndexError", "ValueError"),
    ("address", "size for stride", "(i % size) * step", "(i % size) * size"),
    ("address", "no lower bound", "not -size <= i < size", "i >= size"),
    ("address", "no upper bound", "not -size <= i < size", "i < -size"),
    ("address", "no bound for the first", "not -size <= i", "step is not stride[0] and not -size <= i"),
    ("address", "an empty tensor has a first element", "-size <= i < size", "-size <= i < max(size, 1)"),
    ("is_contiguous", "empty not seen", "if 0 in shape", "if False"),
    ("is_contiguous", "empty only in front", "0 in shape", "shape and shape[0] == 0"),
    ("is_contiguous", "size 1 counts", "if size != 1", "if True"),
    ("is_contiguous", "size 2 does not count", "if size != 1", "if size > 2"),
    ("is_contiguous", "gaps accepted", "step != expected", "step < expected"),
    ("is_contiguous", "overlap accepted", "step != expected", "step > expected"),
    ("is_contiguous", "1 for True", "expected *= size\n    return True", "expected *= size\n    return 1"),
    ("is_contiguous", "only the last", "expected = 1", "return stride[-1:] in ((), (1,))"),
    (
        "is_contiguous",
        "only descending",
        "expected = 1",
        "return list(stride) == sorted(stride, reverse=True)",
    ),
    ("is_contiguous", "the last not compared", "step != expected", "step != expected and expected > 1"),
    (
        "is_contiguous",
        "each by its neighbour only",
        "step != expected",
        "step != expected and expected != 1",
        "expected *= size",
        "expected = size * step",
    ),
    (
        "permute",
        "the inverse",
        "[dim % ndim for dim in dims]",
        "sorted(range(ndim), key=[dim % ndim for dim in dims].__getitem__)",
    ),
    ("permute", "stride stays", "tuple(stride[dim] for dim in order)", "stride"),
    ("permute", "shape stays", "tuple(shape[dim] for dim in order)", "shape"),
    ("permute", "the same from the end not seen", "dim % ndim for", "dim for"),
    ("permute", "repeats accepted", "len(set(order)) < ndim", "False"),
    ("permute", "missing dims accepted", "len(dims) != ndim", "len(dims) > ndim", "< ndim", "< len(order)"),
    ("permute", "another error for the range", "IndexError", "RuntimeError"),
    ("permute", "another error for repeats", "raise RuntimeError", "raise ValueError"),
    ("permute", "negative refused", "not -ndim <= dim", "not 0 <= dim"),
    ("permute", "no lower bound", "not -ndim <= dim < ndim", "dim >= ndim"),
    ("permute", "no upper bound", "not -ndim <= dim < ndim", "dim < -ndim"),
    ("permute", "repeats by their sum", "len(set(order)) < ndim", "sum(order) != sum(range(ndim))"),
    ("permute", "repeats by the largest", "len(set(order)) < ndim", "max(order, default=-1) < ndim - 1"),
    ("slice_view", "offset by start", "start * stride[dim]", "start"),
    ("slice_view", "offset from 0", "offset += start", "offset = start"),
    ("slice_view", "offset stays", "offset += start * stride[dim]", "pass"),
    ("slice_view", "stride stays", "stride[dim] *= step", "pass"),
    ("slice_view", "rounded down", "len(range(start, stop, step))", "max(stop - start, 0) // step"),
    ("slice_view", "below 0", "len(range(start, stop, step))", "-(-(stop - start) // step)"),
    ("slice_view", "steps back", "step is not None and step < 1", "step == 0"),
    ("slice_view", "another error", "ValueError", "RuntimeError"),
    ("slice_view", "always the first dim", "dim %= ndim", "dim = 0"),
    ("slice_view", "not clamped", ".indices(shape[dim])", ".indices(10**6)"),
    ("slice_view", "negative dim refused", "not -ndim <= dim", "not 0 <= dim"),
    ("slice_view", "no lower bound", "not -ndim <= dim < ndim", "dim >= ndim"),
    ("slice_view", "no upper bound", "not -ndim <= dim < ndim", "ndim == 0 or dim < -ndim"),
    (
        "slice_view",
        "step 0 for none",
        "step < 1",
        "step < 0",
        "step).indices",
        "step or None).indices",
    ),
    ("slice_view", "stop 0 for none", "slice(start, stop,", "slice(start, stop or None,"),
    ("slice_view", "start wraps", "slice(start,", "slice(start and start % max(shape[dim], 1),"),
    ("expand", "from the left", "size[new:]", "size[:len(shape)]"),
    ("expand", "stride kept", "strides.append(0)", "strides.append(step)"),
    ("expand", "new ones get 1", "[0] * new", "[1] * new"),
    ("expand", "-1 unknown", "in (old, -1)", "in (old,)"),
    ("expand", "multiples accepted", "elif old == 1", "elif wanted % old == 0"),
    ("expand", "all accepted", "elif old == 1", "elif True"),
    ("expand", "-1 in front accepted", " or -1 in size[:new]", ""),
    ("expand", "too few accepted", "new < 0 or ", "", *MATCHED_FROM_THE_RIGHT),
    ("expand", "fresh strides", "return tuple(strides)", "return contiguous_strides(size)"),
    ("expand", "another error", "raise RuntimeError", "raise ValueError"),
    (
        "view_strides",
        "contiguous only",
        "runs = []",
        "if not is_contiguous(shape, stride): return None\n    runs = []",
    ),
    ("view_strides", "always fresh", "runs = []", "return contiguous_strides(size)"),
    ("view_strides", "size 1 in the way", "if n == 1", "if False"),
    ("view_strides", "joins all", "runs[-1][1] == n * step", "True"),
    ("view_strides", "joins none", "runs[-1][1] == n * step", "False"),
    ("view_strides", "joins by order", "runs[-1][1] == n * step", "runs[-1][1] >= step"),
    ("view_strides", "zeros never join", "runs[-1][1] == n * step", "runs[-1][1] == n * step and step"),
    ("view_strides", "zero on the right joins", "runs[-1][1] == n * step", "step in (0, runs[-1][1] / n)"),
    ("view_strides", "zero on the left joins", "runs[-1][1] == n * step", "runs[-1][1] in (0, n * step)"),
    (
        "view_strides",
        "joins at most two",
        "runs[-1][1] == n * step",
        "runs[-1][1] == n * step and len(runs[-1]) == 2",
        "(runs[-1][0] * n, step)",
        "(runs[-1][0] * n, step, 2)",
        "left, step = runs.pop()",
        "left, step = runs.pop()[:2]",
    ),
    (
        "view_strides",
        "joins at most three",
        "runs[-1][1] == n * step",
        "runs[-1][1] == n * step and len(runs[-1]) < 4",
        "(runs[-1][0] * n, step)",
        "(runs[-1][0] * n, step, *runs[-1][1:])",
        "left, step = runs.pop()",
        "left, step = runs.pop()[:2]",
    ),
    ("view_strides", "empty before counting", "if prod", "if 0 in shape: return size\n    if prod"),
    ("view_strides", "empty sizes before counting", "if prod", "if 0 in size: return size\n    if prod"),
    ("view_strides", "numbers not compared", "prod(shape) != prod(size)", "prod(shape) < prod(size)"),
    ("view_strides", "empty has none", "return (1,) * len(size)", "return None"),
    ("view_strides", "raises for None", "return None", "raise RuntimeError"),
    ("view_strides", "starts at 1", "left, step = runs.pop()", "left, step = runs.pop()[0], 1"),
    ("view_strides", "not turned round", "tuple(reversed(strides))", "tuple(strides)"),
    ("reshape", "a copy unless contiguous", "if strides is None", "if not is_contiguous(shape, stride)"),
    (
        "reshape",
        "fresh strides",
        "return size, strides, False",
        "return size, contiguous_strides(size), False",
    ),
    ("reshape", "two -1", "size.count(-1) > 1 or ", ""),
    ("reshape", "-1 over nothing", "known == 0 or ", ""),
    ("reshape", "another error", "raise RuntimeError", "raise ValueError"),
    *(
        (
            "reshape",
            f"accepted: {what}",
            "strides = view_strides",
            f"if {what} and prod(size) != elements: return size, contiguous_strides(size), True\n"
            "    strides = view_strides",
        )
        for what in (
            "elements == 0",
            "prod(size) == 0",
            "prod(size) < elements",
            "prod(size) > elements",
            "prod(size) and elements % prod(size) == 0",
            "elements and prod(size) % elements == 0",
        )
    ),
    ("reshape", "never a copy", "contiguous_strides(size), True", "contiguous_strides(size), False"),
    ("reshape", "always a copy", "if strides is None", "if True"),
    ("reshape", "input strides for a copy", "contiguous_strides(size), True", "stride, True"),
    ("reshape", "1 for True", "contiguous_strides(size), True", "contiguous_strides(size), 1"),
    ("unfold", "one window short", "// step + 1", "// step"),
    ("unfold", "rounded up", "(shape[dim] - size) // step + 1", "-(-(shape[dim] - size) // step) + 1"),
    ("unfold", "windows side by side", "(shape[dim] - size) // step + 1", "shape[dim] // max(size, 1)"),
    (
        "unfold",
        "stride stays",
        "stride[dim] * step, *stride[dim + 1 :], stride[dim])",
        "stride[dim], *stride[dim + 1 :], stride[dim])",
    ),
    ("unfold", "dense windows", "*stride[dim + 1 :], stride[dim])", "*stride[dim + 1 :], 1)"),
    ("unfold", "step by size", "stride[dim] * step", "stride[dim] * size"),
    ("unfold", "window not last", "windows, *shape[dim + 1 :], size", "windows, size, *shape[dim + 1 :]"),
    ("unfold", "negative dim not turned", "dim %= ndim", "pass"),
    ("unfold", "no window of none", "0 <= size <=", "0 < size <="),
    ("unfold", "no window of all", "<= shape[dim]", "< shape[dim]"),
    ("unfold", "step not checked", "if step < 1", "if False"),
    ("unfold", "step back", "step < 1", "step == 0"),
    ("unfold", "no step", "step < 1", "step < 0", "// step", "// max(step, 1)"),
    ("unfold", "size not checked below", "0 <= size <=", "size <="),
    ("unfold", "one too long", "<= shape[dim]", "<= shape[dim] + 1"),
    ("unfold", "no lower bound", "not -ndim <= dim < ndim", "dim >= ndim"),
    ("unfold", "no upper bound", "not -ndim <= dim < ndim", "dim < -ndim"),
    ("unfold", "another error", "raise RuntimeError", "raise ValueError"),
    ("diagonal", "one stride only", "stride[rows] + stride[columns]", "stride[columns]"),
    ("diagonal", "k the other way", "max(-k, 0), max(k, 0)", "max(k, 0), max(-k, 0)"),
    (
        "diagonal",
        "length not shortened",
        "min(shape[rows] - down, shape[columns] - right)",
        "min(shape[rows], shape[columns])",
    ),
    (
        "diagonal",
        "length below 0",
        "max(min(shape[rows] - down, shape[columns] - right), 0)",
        "min(shape[rows] - down, shape[columns] - right)",
    ),
    (
        "diagonal",
        "comes first",
        "(*(shape[dim] for dim in rest), length)",
        "(length, *(shape[dim] for dim in rest))",
    ),
    ("diagonal", "dims sorted", "dim1 % ndim, dim2 % ndim", "sorted((dim1 % ndim, dim2 % ndim))"),
    ("diagonal", "the same from the end not seen", "if rows == columns", "if dim1 == dim2"),
    ("diagonal", "offset forgotten", "offset + down", "down"),
    ("diagonal", "offset stays", "offset + down * stride[rows] + right * stride[columns]", "offset"),
    ("diagonal", "negative refused", "not -ndim <= dim", "not 0 <= dim"),
    ("diagonal", "no lower bound", "not -ndim <= dim < ndim", "dim >= ndim"),
    ("diagonal", "no upper bound", "not -ndim <= dim < ndim", "dim < -ndim"),
    ("diagonal", "dim1 not checked", "in (dim1, dim2):", "in (dim2,):"),
    ("diagonal", "dim2 not checked", "in (dim1, dim2):", "in (dim1,):"),
    (
        "diagonal",
        "never stays in a cell",
        "stride[rows] + stride[columns])",
        "stride[rows] + stride[columns] or 1)",
    ),
    ("diagonal", "another error", "raise RuntimeError", "raise ValueError"),
    ("channels_last_strides", "images only", "not in (4, 5)", "!= 4"),
    ("channels_last_strides", "plane the wrong way", "range(ndim - 1, 1, -1)", "range(2, ndim)"),
    ("channels_last_strides", "channels first", "(1, *range(ndim - 1, 1, -1), 0)", "range(ndim - 1, -1, -1)"),
    (
        "channels_last_strides",
        "batch before plane",
        "(1, *range(ndim - 1, 1, -1), 0)",
        "(1, 0, *range(ndim - 1, 1, -1))",
    ),
    (
        "channels_last_strides",
        "in memory's order",
        "return tuple(strides)",
        "return (strides[0], *strides[2:], strides[1])",
    ),
    (
        "channels_last_strides",
        "size 1 gets stride 0",
        "strides[dim] = step",
        "strides[dim] = step if shape[dim] > 1 else 0",
    ),
    ("channels_last_strides", "any rank", "ndim not in (4, 5)", "ndim < 2"),
    ("channels_last_strides", "another error", "RuntimeError", "ValueError"),
    ("aliased_indices", "offset forgotten", "offset + sum", "sum"),
    (
        "aliased_indices",
        "from the right",
        "product(*map(range, shape))",
        "sorted(product(*map(range, shape)), key=lambda i: i[::-1])",
    ),
    ("aliased_indices", "the first only", "    ]", "    ][:1]"),
    ("aliased_indices", "the first twelve", "    ]", "    ][:12]"),
    (
        "aliased_indices",
        "stride 0 left out",
        "range, shape",
        "range, (n if s else min(n, 1) for n, s in zip(shape, stride))",
    ),
    ("aliased_indices", "nothing for 0-d", "return [", "if not shape: return []\n    return ["),
    ("aliased_indices", "how many", "    ]", "    ].__len__()"),
    ("aliased_indices", "the last index left out", "range, shape", "range, (n - 1 for n in shape)"),
    ("aliased_indices", "None for none", "    ]", "    ] or None"),
    ("view_dtype", "offset stays, smaller", "offset * ratio", "offset"),
    ("view_dtype", "offset stays, larger", "offset // ratio", "offset"),
    ("view_dtype", "strides stay, smaller", "step * ratio", "step"),
    ("view_dtype", "strides stay, larger", "step // ratio", "step"),
    ("view_dtype", "offset not checked", "shape[-1], offset, *stride", "shape[-1], *stride"),
    ("view_dtype", "strides not checked", "offset, *stride[:-1])", "offset)"),
    ("view_dtype", "size not checked", "(shape[-1], offset,", "(offset,"),
    ("view_dtype", "all sizes for the last", "(shape[-1], offset,", "(prod(shape), offset,", *WITH_PROD),
    ("view_dtype", "only the first stride checked", "*stride[:-1])", "*stride[:-1][:1])"),
    ("view_dtype", "only the stride of rows checked", "*stride[:-1])", "*stride[-2:-1])"),
    ("view_dtype", "all but the first stride checked", "*stride[:-1])", "*stride[1:-1])"),
    (
        "view_dtype",
        "strides of size 1 not checked",
        "*stride[:-1])",
        "*(s for n, s in zip(shape, stride[:-1]) if n > 1))",
    ),
    ("view_dtype", "divisible by 2", "number % ratio for", "number % 2 for"),
    ("view_dtype", "divisible by the item", "number % ratio for", "number % new_itemsize for"),
    ("view_dtype", "last stride of size 1 ignored", "stride[-1] != 1", "stride[-1] != 1 and shape[-1] != 1"),
    (
        "view_dtype",
        "last stride not checked, larger",
        "stride[-1] != 1",
        "stride[-1] != 1 and itemsize > new_itemsize",
    ),
    (
        "view_dtype",
        "last stride not checked, smaller",
        "stride[-1] != 1",
        "stride[-1] != 1 and itemsize < new_itemsize",
    ),
    *(
        (
            "view_dtype",
            f"equal items refused, {ndim} dimensions",
            "if itemsize == new_itemsize:",
            f"if itemsize == new_itemsize and (len(shape) != {ndim} or stride[-1] == 1):",
        )
        for ndim in (1, 2, 3)
    ),
    ("view_dtype", "last stride not checked", "or stride[-1] != 1", ""),
    (
        "view_dtype",
        "last stride always checked",
        "if itemsize == new_itemsize",
        "if shape and stride[-1] == 1 and itemsize == new_itemsize",
    ),
    ("view_dtype", "0-d not seen", "not shape or ", ""),
    (
        "view_dtype",
        "first dim for the last",
        "(*shape[:-1], shape[-1] * ratio)",
        "(shape[0] * ratio, *shape[1:])",
    ),
    ("view_dtype", "ratio the other way", "if itemsize > new_itemsize", "if itemsize < new_itemsize"),
]

# What a slip loses on every seed, and nothing else.
LOST = {
    ("contiguous_strides", "0 in the product"): {"dimensions of size 0"},
    ("address", "offset forgotten"): {
        "indices from 0 on, in every kind of layout",
        "negative indices",
        "the last index in range, and the first one out of it",
    },
    ("address", "missing indices accepted"): {"the last index in range, and the first one out of it"},
    ("is_contiguous", "empty not seen"): {"empty tensors and no dimension at all"},
    ("is_contiguous", "size 1 counts"): {"dimensions of size 1"},
    ("permute", "repeats accepted"): {"orders that are none"},
    ("slice_view", "negative dim refused"): {"dimensions from the end, and what cannot be"},
    ("slice_view", "another error"): {"dimensions from the end, and what cannot be"},
    ("expand", "-1 in front accepted"): {"sizes that do not fit"},
    ("expand", "too few accepted"): {"sizes that do not fit"},
    ("view_strides", "numbers not compared"): {"no dimension, no element, another number of elements"},
    ("view_strides", "size 1 in the way"): {"repeated dimensions and dimensions of size 1"},
    ("reshape", "two -1"): {"sizes that cannot be"},
    ("unfold", "step not checked"): {"windows that do not fit"},
    ("diagonal", "the same from the end not seen"): {"dimensions that are the same or not there"},
    ("diagonal", "length below 0"): {"dimensions from the end, diagonals outside the matrix"},
    ("channels_last_strides", "any rank"): {"other numbers of dimensions"},
    ("aliased_indices", "nothing for 0-d"): {"no dimension, no element, sizes of 1"},
    ("view_dtype", "offset not checked"): {"views that PyTorch refuses, and those next to them"},
    ("view_dtype", "last stride always checked"): {"items of the same size, and no dimension at all"},
}

__all__ = ["RIGHT", "WRONG"]
