"""Lab 4: its points, learners' slips, other ways of thinking, and what is no thought at all."""

from glassbox.mini.aten import loop_layout
from glassbox.mini.c10 import layout, promotion
from glassbox.mini.sim import cost, races, schedule
from glassbox.records import overhead

from .lab4_ways import RIGHT, WRONG, one_stream

POINTS = {
    "broadcast_shapes": 7,
    "result_type": 15,
    "output_strides": 11,
    "coalesce_dimensions": 8,
    "run_streams": 9,
    "fused_kernel": 14,
    "two_streams": 14,
    "fit_cost": 11,
    "cache_lines": 11,
}
CORE = 5
# Its four pieces are each a line; the task is the program that they make together.
CORE_WITHOUT_PIECE = ("run_streams",)
WRITTEN = "written_timeline"
READ = "notebook 04, "
CALLS = {}

TELLING = ("fused", "makespan", "two_stream", "cache_line", "least_squares", "theil", "fit_line", "lines_touched")
NEAR = (layout, loop_layout, promotion, schedule, cost, races, overhead)

# (function, kind of an answer, least share in every property of the answers for which that is true, and of the others)
SHARES = [
    ("result_type", lambda name: "float" in name, 0.1),
    ("coalesce_dimensions", lambda value: len(value[0]) == 1, 0.05),
]

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float32", "float64")


def _dense(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def _always(value):
    return lambda *args: value


TRIVIAL = {
    **{f"returns {name!r}": _always(name) for name in DTYPES},
    "the first operand's dtype": lambda *args: args[0][0][0],
    "the last operand's dtype": lambda *args: args[0][-1][0],
    "the dtype that comes last in a list of all": lambda *args: max((pair[0] for pair in args[0]), key=DTYPES.index),
    "sizes, the larger of each two": lambda *args: tuple(map(max, *args)),
    "fresh strides": lambda *args: _dense(args[0]),
    "the first operand's strides": lambda *args: args[1][0],
    "everything joined": lambda *args: ((_product(args[0]),), tuple((1,) for _ in args[1])),
    "nothing joined": lambda *args: (args[0], args[1]),
    "the end of all work, for every step": lambda *args: [sum(args[2])] * len(args[0]),
    "the host's time, for every step": lambda *args: [args[1]] * len(args[0]),
    "all on one stream": lambda *args: one_stream(args[0]),
    "no steps": lambda *args: [],
    "each kernel on the other stream, no waits": lambda *args: [("launch", at % 2, at) for at in range(len(args[0]))],
    "half a line": lambda *args: (0.0, 0.0, 0),
    "one line, in the order given": lambda *args: (1, 1, tuple(range(len(args[0])))),
    "a line an element, in the order given": lambda *args: (
        _product(args[0]),
        _product(args[0]),
        tuple(range(len(args[0]))),
    ),
}
RIGHT_THERE = set()


def _product(sizes):
    found = 1
    for size in sizes:
        found *= size
    return found


# (name of the function, what the slip is, then pairs: text of the solution, text with the slip)
SLIPS = [
    ("broadcast_shapes", "the larger size", "right if left == 1 else left", "max(left, right)"),
    ("broadcast_shapes", "0 counts as missing", "right if left == 1 else left", "left or right"),
    (
        "broadcast_shapes",
        "from the left",
        "(1,) * (ndim - len(a)) + tuple(a)",
        "tuple(a) + (1,) * (ndim - len(a))",
        "(1,) * (ndim - len(b)) + tuple(b)",
        "tuple(b) + (1,) * (ndim - len(b))",
    ),
    ("broadcast_shapes", "the shorter length", "max(len(a), len(b))", "min(len(a), len(b))"),
    ("broadcast_shapes", "only the first stretches", "and right != 1", ""),
    ("broadcast_shapes", "only the second stretches", "left != 1 and ", ""),
    (
        "broadcast_shapes",
        "multiples repeat",
        "left != right and",
        "left and right and left % right and right % left and",
    ),
    ("broadcast_shapes", "0 meets anything", "left != right and", "left != right and 0 not in (left, right) and"),
    ("broadcast_shapes", "all accepted", "if left != right and", "if False and"),
    ("broadcast_shapes", "another error", "raise RuntimeError", "raise ValueError"),
    ("broadcast_shapes", "only the last is checked", "if left != right", "if len(shape) == ndim - 1 and left != right"),
    ("broadcast_shapes", "only the first is checked", "if left != right", "if not shape and left != right"),
    ("broadcast_shapes", "the first shape's sizes", "right if left == 1 else left", "left"),
    ("broadcast_shapes", "missing counts as 0", "(1,) * (ndim - len(a))", "(0,) * (ndim - len(a))"),
    ("result_type", "uint8 with int8 is int8", 'return "int16"', 'return "int8"'),
    ("result_type", "uint8 with int8 is uint8", 'return "int16"', 'return "uint8"'),
    (
        "result_type",
        "uint8 with any signed is int16",
        'if {a, b} == {"uint8", "int8"}',
        'if "uint8" in (a, b) and a != b',
    ),
    ("result_type", "width before kind", "max(a, b, key=kind)", "max(a, b, key=width.get)"),
    (
        "result_type",
        "int64 with bfloat16 is float32",
        "return max(a, b, key=kind)",
        'return "float32" if {a, b} == {"int64", "bfloat16"} else max(a, b, key=kind)',
    ),
    ("result_type", "bool is an integer", 'return 0 if name == "bool" else 2', "return 2"),
    ("result_type", "bool is an integer of width 1", '0 if name == "bool" else 2', '1 if name == "bool" else 2'),
    (
        "result_type",
        "bfloat16 is no floating point",
        '2 if "float" in name',
        '2 if name.startswith("float")',
    ),
    ("result_type", "float64 stays for a number", 'name = "float32"', "pass"),
    ("result_type", "every float64 is a float32", 'category == "number" and ', ""),
    (
        "result_type",
        "categories do not matter",
        "best[category] = promote(best[category], name)",
        'best["tensor"] = promote(best["tensor"], name)',
    ),
    (
        "result_type",
        "a 0-d tensor counts as a tensor",
        "best[category] =",
        'category = "tensor" if category != "number" else category\n        best[category] =',
    ),
    (
        "result_type",
        "a 0-d tensor counts as a number",
        "best[category] =",
        'category = "number" if category != "tensor" else category\n        best[category] =',
    ),
    (
        "result_type",
        "a number counts as a 0-d tensor",
        "best[category] =",
        'category = "0-d tensor" if category == "number" else category\n        best[category] =',
    ),
    ("result_type", "the higher always decides", "lower if kind(lower) > kind(higher) else higher", "higher"),
    (
        "result_type",
        "the higher kind, then promoted",
        "return lower if kind(lower) > kind(higher) else higher",
        "return promote(lower, higher) if kind(lower) > 1 else higher",
    ),
    ("result_type", "a tie goes to the lower", "kind(lower) > kind(higher)", "kind(lower) >= kind(higher)"),
    (
        "result_type",
        "a higher kind brings the default dtype",
        "return lower if kind(lower) > kind(higher)",
        'return ("float32" if kind(lower) == 2 else "int64") if kind(lower) > kind(higher)',
    ),
    (
        "result_type",
        "the last of a category",
        "best[category] = promote(best[category], name)",
        "best[category] = name",
    ),
    (
        "result_type",
        "0-d tensors left out",
        'combine(best["0-d tensor"], best["number"])',
        'best["number"] or best["0-d tensor"]',
    ),
    (
        "result_type",
        "numbers left out",
        'combine(best["0-d tensor"], best["number"])',
        'best["0-d tensor"] or best["number"]',
    ),
    (
        "result_type",
        "int64 numbers are int32",
        "best[category] =",
        'name = "int32" if category == "number" and name == "int64" else name\n        best[category] =',
    ),
    ("output_strides", "the usual order", "if outside:", "if False:"),
    (
        "output_strides",
        "0 is the smallest stride",
        "if stride[a] == 0 or stride[b] == 0",
        "if stride[a] == stride[b] == 0",
    ),
    ("output_strides", "only a's zero is no opinion", "stride[a] == 0 or stride[b] == 0", "stride[a] == 0"),
    ("output_strides", "only b's zero is no opinion", "stride[a] == 0 or stride[b] == 0", "stride[b] == 0"),
    ("output_strides", "only the first operand", "for stride in operand_strides", "for stride in operand_strides[:1]"),
    ("output_strides", "only the last operand", "for stride in operand_strides", "for stride in operand_strides[-1:]"),
    ("output_strides", "the last operand first", "in operand_strides", "in reversed(operand_strides)"),
    ("output_strides", "the first operand's zeros end it", "            continue\n", "            return None\n"),
    ("output_strides", "the smaller stride outside", "stride[a] > stride[b]", "stride[a] < stride[b]"),
    ("output_strides", "sizes not looked at", "shape[a] > shape[b]", "False"),
    ("output_strides", "the smaller size outside", "shape[a] > shape[b]", "shape[a] < shape[b]"),
    (
        "output_strides",
        "sizes always decide",
        "if shape[a] > shape[b]:\n                return True",
        "return shape[a] > shape[b]",
    ),
    ("output_strides", "no opinion stops", "if outside is False", "if not outside"),
    ("output_strides", "False looks further", "if outside is False", "if False"),
    ("output_strides", "its place is not moved", "place = other", "pass"),
    ("output_strides", "neighbours only", "reversed(range(place))", "range(max(place - 1, 0), place)"),
    ("output_strides", "the farthest first", "reversed(range(place))", "range(place)"),
    ("output_strides", "from the first dimension", "in reversed(range(len(shape)))", "in range(len(shape))"),
    ("output_strides", "outermost first", "for dim in order", "for dim in reversed(order)"),
    (
        "output_strides",
        "the gaps are kept",
        "strides = [0] * len(shape)",
        "if len(operand_strides) == 1 and 0 not in operand_strides[0]: return operand_strides[0]\n"
        "    strides = [0] * len(shape)",
    ),
    ("output_strides", "in the order of the loop", "strides[dim] = step", "strides[order.index(dim)] = step"),
    (
        "output_strides",
        "its own size taken in",
        "strides[dim] = step\n        step *= shape[dim]",
        "step *= shape[dim]\n        strides[dim] = step",
    ),
    ("output_strides", "in bytes", "step = 1", "step = 4"),
    (
        "coalesce_dimensions",
        "only the first operand asked",
        "zip(steps, inner_steps))",
        "list(zip(steps, inner_steps))[:1])",
    ),
    (
        "coalesce_dimensions",
        "only the last operand asked",
        "zip(steps, inner_steps))",
        "list(zip(steps, inner_steps))[-1:])",
    ),
    ("coalesce_dimensions", "any operand is enough", "or all(", "or any("),
    ("coalesce_dimensions", "outermost first", "step == inner * before", "before == size * step"),
    ("coalesce_dimensions", "size for the joined size", "step == inner * before", "step == shape[0] * before"),
    ("coalesce_dimensions", "equal strides join", "step == inner * before", "step in (before, inner * before)"),
    ("coalesce_dimensions", "zero joins anything", "step == inner * before", "(step == inner * before or step == 0)"),
    ("coalesce_dimensions", "anything joins zero", "step == inner * before", "(step == inner * before or before == 0)"),
    ("coalesce_dimensions", "zeros never join", "step == inner * before", "step == inner * before and step"),
    (
        "coalesce_dimensions",
        "the new strides are kept",
        "joined[-1] = inner * size, inner_steps",
        "joined[-1] = inner * size, steps",
    ),
    ("coalesce_dimensions", "size 1 is in the way", "size == 1 or all", "all"),
    ("coalesce_dimensions", "an inner size 1 is in the way", "if inner == 1:", "if False:"),
    (
        "coalesce_dimensions",
        "a size 1 inside keeps its strides",
        "joined[-1] = size, steps\n",
        "joined[-1] = size, inner_steps\n",
    ),
    ("coalesce_dimensions", "sizes add up", "inner * size, inner_steps", "inner + size, inner_steps"),
    ("coalesce_dimensions", "joins at most once", "if joined:", "if len(joined) == 1:"),
    (
        "coalesce_dimensions",
        "size 1 vanishes everywhere",
        "    if joined:",
        "    if size == 1:\n            continue\n        if joined:",
    ),
    (
        "coalesce_dimensions",
        "strides by dimension",
        "for at in range(len(operand_strides))",
        "for at in range(len(operand_strides))[:1]",
    ),
    ("coalesce_dimensions", "a gap joins", "step == inner * before", "step >= inner * before"),
    ("run_streams", "the gap forgotten", "host) + gap + duration", "host) + duration"),
    ("run_streams", "the gap only in an idle stream", "max(ends[stream], host) + gap", "max(ends[stream], host + gap)"),
    ("run_streams", "the gap only in a busy stream", "max(ends[stream], host) + gap", "max(ends[stream] + gap, host)"),
    ("run_streams", "launching is free", "host += launch", "pass"),
    (
        "run_streams",
        "the host pays after the launch",
        "host += launch\n            ends[stream] = max(ends[stream], host) + gap + duration",
        "ends[stream] = max(ends[stream], host) + gap + duration\n            host += launch",
    ),
    (
        "run_streams",
        "the host waits for its kernels",
        'times.append(ends[stream])\n        elif kind == "record"',
        'times.append(ends[stream])\n            host = ends[stream]\n        elif kind == "record"',
    ),
    ("run_streams", "a kernel starts at its launch", "max(ends[stream], host) + gap", "host + gap"),
    ("run_streams", "a kernel starts after its stream only", "max(ends[stream], host) + gap", "ends[stream] + gap"),
    (
        "run_streams",
        "one queue for all",
        "ends[stream] = max(ends[stream], host)",
        "ends[stream] = max(*ends, host, host)",
    ),
    (
        "run_streams",
        "a mark is the stream's end",
        "events[event] = max(ends[stream], host)",
        "events[event] = ends[stream]",
    ),
    ("run_streams", "a mark is now", "events[event] = max(ends[stream], host)", "events[event] = host"),
    ("run_streams", "recording is free", "event, stream = given\n            host += call", "event, stream = given"),
    ("run_streams", "waiting is free", "stream, event = given\n            host += call", "stream, event = given"),
    ("run_streams", "synchronizing is free", "    else:\n            host += call", "    else:\n            pass"),
    (
        "run_streams",
        "a mark stays where it was",
        "events[event] = max(ends[stream], host)",
        "events.setdefault(event, max(ends[stream], host))",
    ),
    (
        "run_streams",
        "a wait turns time back",
        "max(ends[stream], events.get(event, 0))",
        "events.get(event, ends[stream])",
    ),
    (
        "run_streams",
        "the host waits, too",
        "ends[stream] = max(ends[stream], events.get(event, 0))",
        "ends[stream] = max(ends[stream], events.get(event, 0))\n            host = max(host, events.get(event, 0))",
    ),
    (
        "run_streams",
        "a wait is for the whole stream",
        "events[event] = max(ends[stream], host)\n            times.append(events[event])",
        "events[event] = max(ends[stream], host)\n            events[event, 0] = stream\n"
        "            times.append(events[event])",
        "events.get(event, 0))",
        "ends[events[event, 0]] if event in events else 0)",
    ),
    ("run_streams", "an event without a record is an error", "events.get(event, 0)", "events[event]"),
    ("run_streams", "an event without a record is the host's time", "events.get(event, 0)", "events.get(event, host)"),
    (
        "run_streams",
        "a wait moves the stream to the host's time",
        "events.get(event, 0))",
        "events.get(event, 0), host)",
    ),
    ("run_streams", "synchronizing turns time back", "host = max(host, awaited)", "host = awaited"),
    ("run_streams", "synchronizing waits for all", "awaited = ends[given[0]]", "awaited = max(ends)"),
    ("run_streams", "an event for the device", "awaited = events[given[0]]", "awaited = max(ends)"),
    ("run_streams", "the device is its first stream", "awaited = max(ends)", "awaited = ends[0]"),
    ("run_streams", "an idle start", "ends, events, times = list(ends)", "ends, events, times = [0] * len(ends)"),
    ("fused_kernel", "offset forgotten", "storage[offset + sum", "storage[sum"),
    (
        "fused_kernel",
        "fresh strides",
        "storage[offset + sum(i * step for i, size, step in zip(own, shape, stride) if size != 1)]",
        "storage[(offset + sum(i * prod(shape[d + 1 :]) for d, i in enumerate(own) if shape[d] != 1)) % len(storage)]",
    ),
    ("fused_kernel", "matched from the left", "index[len(index) - len(shape) :]", "index[: len(shape)]"),
    (
        "fused_kernel",
        "a size of 1 moves on",
        " if size != 1)",
        ")",
    ),
    ("fused_kernel", "loads by places", "len(values) * len(used)", 'len(values) * str(expression).count("1")'),
    ("fused_kernel", "every operand is loaded", "len(values) * len(used)", "len(values) * len(operands)"),
    (
        "fused_kernel",
        "each operand's own elements",
        "len(values) * len(used)",
        "sum(prod(operands[n][1]) for n in used)",
    ),
    ("fused_kernel", "numbers are loaded", "sum(not isinstance(each, float) for each in given)", "len(given)"),
    (
        "fused_kernel",
        "only operands are loaded",
        "sum(not isinstance(each, float) for each in given)",
        "sum(isinstance(each, int) for each in given)",
    ),
    ("fused_kernel", "one load an op", "* sum(not isinstance(each, float) for each in given)", ""),
    ("fused_kernel", "a store for each argument", "moved[1] += prod(shape)", "moved[1] += prod(shape) * len(given)"),
    (
        "fused_kernel",
        "kernels over the whole shape",
        "return shape, values, (len(values)",
        "moved[1] = len(values) * str(expression).count('(')\n    return shape, values, (len(values)",
    ),
    (
        "fused_kernel",
        "a small op's arguments at their own size",
        "moved[0] += prod(shape) * sum(not isinstance(each, float) for each in given)",
        "moved[0] += sum(\n            prod(operands[e][1]) if isinstance(e, int) else prod(shape)"
        " for e in given if not isinstance(e, float))",
    ),
    (
        "fused_kernel",
        "unused operands count",
        "shape = planned(expression)\n",
        "shape = planned(expression)\n    for operand in operands:\n        shape = meet(shape, operand[1])\n",
    ),
    (
        "fused_kernel",
        "the first operand's shape",
        "shape = planned(expression)",
        "planned(expression)\n    shape = operands[min(used)][1]",
    ),
    (
        "fused_kernel",
        "negative operands count from the end",
        "0 <= node < len(operands)",
        "-len(operands) <= node < len(operands)",
        "used.add(node)",
        "node %= len(operands)\n            used.add(node)",
        "return loaded[node]",
        "return loaded[node % len(operands)]",
    ),
    ("fused_kernel", "an unknown op is a KeyError", "raise ValueError", "raise KeyError"),
    ("fused_kernel", "a missing operand is a ValueError", "raise IndexError", "raise ValueError"),
    ("fused_kernel", "another error for shapes", "raise RuntimeError", "raise ValueError"),
    ("fused_kernel", "sub the other way", "x - y", "y - x"),
    ("fused_kernel", "relu is abs", "max(x, 0.0)", "abs(x)"),
    ("fused_kernel", "relu of ints", "max(x, 0.0)", "max(x, 0)"),
    ("fused_kernel", "maximum is a minimum", "max(x, y)", "min(x, y)"),
    ("fused_kernel", "nested values", "return shape, values, (len", "return shape, [values], (len"),
    (
        "fused_kernel",
        "empty results not walked",
        "return shape, values, (len",
        "if not values: return shape, [0.0], (0, 0), (0, 0)\n    return shape, values, (len",
    ),
    ("two_streams", "no waits", 'plan.append(("wait", streams[number], other))', "pass"),
    (
        "two_streams",
        "waits after the launch",
        'plan.append(("launch", streams[number], number))',
        "pass",
        "for other in needs[number]:",
        'plan.append(("launch", streams[number], number))\n        for other in needs[number]:',
    ),
    (
        "two_streams",
        "the record comes before the launch",
        'plan.append(("launch", streams[number], number))',
        "pass",
        'plan.append(("record", number, streams[number]))',
        'plan.append(("record", number, streams[number]))\n        plan.append(("launch", streams[number], number))',
    ),
    (
        "two_streams",
        "the wait on the wrong stream",
        '("wait", streams[number], other)',
        '("wait", streams[other], other)',
    ),
    (
        "two_streams",
        "event and stream mixed up",
        '("record", number, streams[number])',
        '("record", streams[number], number % 2)',
    ),
    (
        "two_streams",
        "one event for all",
        '("record", number, streams[number])',
        '("record", 0, streams[number])',
        '("wait", streams[number], other)',
        '("wait", streams[number], 0)',
    ),
    (
        "two_streams",
        "only writes then reads",
        "return {*written} & {*reads, *writes} or {*read} & {*writes}",
        "return {*written} & {*reads}",
    ),
    ("two_streams", "writes over reads forgotten", " or {*read} & {*writes}", ""),
    ("two_streams", "writes over writes forgotten", "{*reads, *writes}", "{*reads}"),
    ("two_streams", "reads have an order", "{*read} & {*writes}", "{*read} & {*reads, *writes}"),
    ("two_streams", "only the kernel before", "for i in range(j) if", "for i in range(max(j - 1, 0), j) if"),
    (
        "two_streams",
        "only the last that is needed",
        "for other in needs[number]",
        "for other in needs[number][-1:]",
    ),
    ("two_streams", "only the first that is needed", "for other in needs[number]", "for other in needs[number][:1]"),
    ("two_streams", "taken in turn", "min(product((0, 1), repeat=len(kernels)), key=ends)", "[n % 2 for n in numbers]"),
    ("two_streams", "all on one", "min(product((0, 1), repeat=len(kernels)), key=ends)", "[0 for n in numbers]"),
    (
        "two_streams",
        "in two halves",
        "min(product((0, 1), repeat=len(kernels)), key=ends)",
        "[2 * n // len(kernels) for n in numbers]",
    ),
    ("two_streams", "needs not counted", "done[i] for i in needs[number]", "0 for i in needs[number]"),
    (
        "two_streams",
        "the work balanced only",
        "key=ends)",
        "key=lambda s: max(sum(k[0] for k, on in zip(kernels, s) if on == one) for one in (0, 1)))",
    ),
    (
        "two_streams",
        "kernels counted from 1",
        '("launch", streams[number], number)',
        '("launch", streams[number], number + 1)',
    ),
    (
        "two_streams",
        "streams counted from 1",
        "plan = []",
        "streams = [stream + 1 for stream in streams]\n    plan = []",
    ),
    (
        "fit_cost",
        "the first pair",
        "best = max(best, (passed, overhead, each))",
        "best = max(best, (1, overhead, each))",
    ),
    ("fit_cost", "slope upside down", "(longer - us) / (many - few)", "(many - few) / (longer - us or 1.0)"),
    ("fit_cost", "overhead at the first size", "overhead = us - each * few", "overhead = us"),
    ("fit_cost", "crossing rounded down", "ceil(overhead / each)", "int(overhead / each) - 1"),
    ("fit_cost", "crossing as a float", "ceil(overhead / each)", "overhead / each"),
    ("fit_cost", "crossing the other way round", "ceil(overhead / each)", "ceil(each / overhead)"),
    ("fit_cost", "one size twice", "if few == many:\n            continue", "pass"),
    ("fit_cost", "in milliseconds", "return overhead, each, ceil", "return overhead / 1000, each / 1000, ceil"),
    ("fit_cost", "overhead and slope mixed up", "return overhead, each, ceil", "return each, overhead, ceil"),
    (
        "fit_cost",
        "only above the line counted",
        "abs(time - overhead - each * n) <= 2 * noise",
        "time - overhead - each * n >= -2 * noise",
    ),
    (
        "fit_cost",
        "only below the line counted",
        "abs(time - overhead - each * n) <= 2 * noise",
        "time - overhead - each * n <= 2 * noise",
    ),
    (
        "fit_cost",
        "squares added up",
        "passed = sum(abs(time - overhead - each * n) <= 2 * noise for n, time in ledger)",
        "passed = 1 / (1e-9 + sum((time - overhead - each * n) ** 2 for n, time in ledger))",
    ),
    (
        "fit_cost",
        "the largest deviation",
        "passed = sum(abs(time - overhead - each * n) <= 2 * noise for n, time in ledger)",
        "passed = 1 / (1e-9 + max(abs(time - overhead - each * n) for n, time in ledger))",
    ),
    ("fit_cost", "neighbours only", "combinations(ledger, 2)", "zip(sorted(ledger), sorted(ledger)[1:])"),
    ("fit_cost", "the ends only", "combinations(ledger, 2)", "[(min(ledger), max(ledger))]"),
    ("cache_lines", "offset forgotten", "(offset + sum", "(sum"),
    ("cache_lines", "in elements", "* itemsize // line", "// line"),
    (
        "cache_lines",
        "offset in bytes",
        "(offset + sum(i * stride[dim] for i, dim in zip(index, order))) * itemsize // line",
        "(offset + itemsize * sum(i * stride[dim] for i, dim in zip(index, order))) // line",
    ),
    (
        "cache_lines",
        "from the first element on",
        "yield (offset + sum",
        "yield (sum",
        "* itemsize // line",
        "* itemsize // line + 0 * offset",
    ),
    ("cache_lines", "a line of elements", "* itemsize // line", "// (line // itemsize * 2)"),
    ("cache_lines", "lines in order only", "return len(set(walk(order)))", "return fetched(order)"),
    ("cache_lines", "elements, not lines", "len(set(walk(order)))", "len(list(walk(order)))"),
    ("cache_lines", "bytes over line", "len(set(walk(order)))", "-(-len(list(walk(order))) * itemsize // line)"),
    (
        "cache_lines",
        "from the first line to the last",
        "len(set(walk(order)))",
        "(max(walk(order), default=-1) - min(walk(order), default=0) + 1)",
    ),
    (
        "cache_lines",
        "the first is no fetch",
        "count, before = 0, None",
        "count, before = 0, (offset * itemsize // line)",
    ),
    ("cache_lines", "only steps forward", "count += number != before", "count += before is None or number > before"),
    ("cache_lines", "the worst order", "min(permutations", "max(permutations"),
    ("cache_lines", "the order given", "min(permutations(range(len(shape))), key=fetched)", "tuple(range(len(shape)))"),
    ("cache_lines", "innermost first", "fetched(order), order", "fetched(order), order[::-1]"),
    ("cache_lines", "fetches in the order given", "fetched(order), order", "fetched(range(len(shape))), order"),
    (
        "cache_lines",
        "by stride",
        "min(permutations(range(len(shape))), key=fetched)",
        "sorted(range(len(shape)), key=lambda dim: -stride[dim])",
    ),
    ("cache_lines", "an empty loop fetches", "count, before = 0, None", "count, before = 1, next(walk(order), None)"),
    (
        "cache_lines",
        "strides of the order",
        "stride[dim] for i, dim in zip(index, order)",
        "stride[d] for d, i in enumerate(index)",
    ),
]

# What a slip loses on every seed, and nothing else.
LOST = {
    ("broadcast_shapes", "the larger size"): {"shapes of equal length", "sizes of 0"},
    ("broadcast_shapes", "another error"): {"shapes that do not meet, and those next to them"},
    ("broadcast_shapes", "multiples repeat"): {"shapes that do not meet, and those next to them"},
    ("result_type", "the higher always decides"): {
        "0-d tensors beside tensors with dimensions",
        "Python numbers beside tensors",
        "no tensor with dimensions",
    },
    ("result_type", "float64 stays for a number"): {"Python numbers beside tensors", "no tensor with dimensions"},
    ("coalesce_dimensions", "size 1 is in the way"): {"sizes of 1"},
    ("run_streams", "the gap forgotten"): {
        "launches: the host runs ahead",
        "events: one stream waits for another",
        "synchronizing: the host waits",
        "all of it together",
    },
    ("fused_kernel", "another error for shapes"): {"no dimension, no element, and what cannot be"},
    ("fused_kernel", "an unknown op is a KeyError"): {"no dimension, no element, and what cannot be"},
    ("two_streams", "writes over reads forgotten"): {"buffers that are used again"},
    ("fit_cost", "squares added up"): {
        "up to a third of the measurements disturbed",
        "disturbed at the smallest or the largest sizes",
    },
    ("cache_lines", "an empty loop fetches"): {"sizes of 1, no dimension, no element"},
}

__all__ = ["RIGHT", "WRONG"]
