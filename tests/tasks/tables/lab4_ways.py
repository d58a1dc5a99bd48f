"""Lab 4: other ways of thinking than the solutions' own, some right and some short cuts."""

import itertools
import math


def broadcast_shapes__by_filling(a, b):
    shape = []
    for x, y in itertools.zip_longest(reversed(a), reversed(b), fillvalue=1):
        sizes = {x, y} - {1}
        if len(sizes) > 1:
            raise RuntimeError
        shape.insert(0, sizes.pop() if sizes else 1)
    return shape


def result_type__by_a_table(operands):
    """Each dtype with a rank; a category above adds nothing but its say."""
    order = ["bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float32", "float64"]

    def kind(name):
        return (order.index(name) > 0) + (order.index(name) > 5)

    def joined(names):
        wide = max(names, key=order.index)
        return "int16" if {"uint8", "int8"} <= set(names) and wide == "int8" else wide

    best = None
    for category in ("number", "0-d tensor", "tensor"):
        names = [name for name, of in operands if of == category]
        if category == "number":
            names = ["float32" if name == "float64" else name for name in names]
        if names:
            mine = joined(names)
            best = mine if best is None or kind(mine) >= kind(best) else best
    return best


def result_type__widest_kind_first(operands):
    """Looks for the highest kind of all, then promotes what is of it."""
    order = ["bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float32", "float64"]
    return max((name for name, _ in operands), key=order.index)


def _sorted(key):
    """Strides with the dimensions in the order of key(operand_strides, dim), the least one innermost."""

    def output_strides(shape, operand_strides):
        innermost_first = sorted(_from_the_last(shape), key=lambda dim: key(operand_strides, dim))
        strides, step = [0] * len(shape), 1
        for dim in innermost_first:
            strides[dim] = step
            step *= shape[dim]
        return strides

    return output_strides


def _from_the_last(shape):
    return list(reversed(range(len(shape))))


def coalesce_dimensions__ones_taken_out(shape, operand_strides):
    """Right: sizes of 1 go first, then neighbours join."""
    kept = [dim for dim, size in enumerate(shape) if size != 1]
    if not kept:
        return ((1,), tuple((0,) for _ in operand_strides)) if shape else ((), tuple(() for _ in operand_strides))
    groups = [[kept[0]]]
    for before, dim in itertools.pairwise(kept):
        if all(stride[dim] == shape[before] * stride[before] for stride in operand_strides):
            groups[-1].append(dim)
        else:
            groups.append([dim])
    sizes = tuple(math.prod(shape[dim] for dim in group) for group in groups)
    return sizes, tuple(tuple(stride[group[0]] for group in groups) for stride in operand_strides)


def coalesce_dimensions__contiguous_or_nothing(shape, operand_strides):
    """Joins all or nothing."""
    step = 1
    for size, *steps in zip(shape, *operand_strides, strict=True):
        if size != 1 and any(each != step for each in steps):
            return shape, operand_strides
        step *= size
    return (step,), tuple((1,) for _ in operand_strides)


def run_streams__as_one_clock(program, host, ends, launch, call, gap):
    """One clock for everything: each step begins when the one before is done."""
    times, now = [], max([host, *ends])
    for kind, *given in program:
        now += {"launch": launch + gap, "work": 0}.get(kind, call)
        now += given[-1] if kind in ("launch", "work") else 0
        times.append(now)
    return times


def one_stream(kernels):
    return [("launch", 0, number) for number in range(len(kernels))]


def _ordered(first, second):
    return {*first[2]} & {*second[1], *second[2]} or {*first[1]} & {*second[2]}


def _planned(kernels, streams):
    """Waits for everything that is needed, also in one's own stream; events are strings."""
    plan = []
    for j, stream in enumerate(streams):
        for i in range(j):
            if _ordered(kernels[i], kernels[j]):
                plan.append(("wait", stream, f"after {i}"))
        plan += [("launch", stream, j), ("record", f"after {j}", stream)]
    return plan


def two_streams__to_the_limit(kernels, limit):
    """Right: stops at the first way that is done in time."""
    for streams in itertools.product((0, 1), repeat=len(kernels)):
        done, free = [], [0, 0]
        for j, stream in enumerate(streams):
            after = [done[i] for i in range(j) if _ordered(kernels[i], kernels[j])]
            free[stream] = max([free[stream], *after]) + kernels[j][0]
            done.append(free[stream])
        if max(free) <= limit:
            return _planned(kernels, streams)
    return None


def two_streams__whichever_is_free(kernels, limit):
    """Greedy: each kernel where it can start first."""
    done, free, streams = [], [0, 0], []
    for j, kernel in enumerate(kernels):
        after = max([done[i] for i in range(j) if _ordered(kernels[i], kernel)], default=0)
        stream = min((0, 1), key=lambda s: max(free[s], after))
        free[stream] = max(free[stream], after) + kernel[0]
        done.append(free[stream])
        streams.append(stream)
    return _planned(kernels, streams)


def two_streams__whichever_has_less_work(kernels, limit):
    load, streams = [0, 0], []
    for kernel in kernels:
        stream = load.index(min(load))
        load[stream] += kernel[0]
        streams.append(stream)
    return _planned(kernels, streams)


def two_streams__right_by_luck(kernels, limit):
    """No waits where the times come out right anyway."""
    plan = two_streams__to_the_limit(kernels, limit)
    return [step for step in plan or [] if step[0] == "launch"]


def _crossing(overhead, each):
    return overhead, each, math.ceil(overhead / each) if each > 0 else 0


def fit_cost__the_median_deviation(ledger, noise):
    """Right: the line whose middle deviation is least."""
    lines = []
    for (n, us), (m, other) in itertools.combinations(ledger, 2):
        if n != m:
            each = (other - us) / (m - n)
            overhead = us - each * n
            off = sorted(abs(t - overhead - each * k) for k, t in ledger)
            lines.append((off[math.ceil(2 * len(ledger) / 3) - 1], overhead, each))
    return _crossing(*min(lines)[1:])


def fit_cost__least_squares(ledger, noise):
    n = len(ledger)
    mean_x, mean_y = sum(x for x, _ in ledger) / n, sum(y for _, y in ledger) / n
    each = sum((x - mean_x) * (y - mean_y) for x, y in ledger) / sum((x - mean_x) ** 2 for x, _ in ledger)
    return _crossing(mean_y - each * mean_x, each)


def fit_cost__least_and_largest(ledger, noise):
    (n, us), (m, other) = min(ledger), max(ledger)
    each = (other - us) / (m - n)
    return _crossing(us - each * n, each)


def fit_cost__the_two_fastest_ends(ledger, noise):
    """The fastest of the smaller half and of the larger half."""
    ordered = sorted(ledger)
    half = len(ordered) // 2
    (n, us), (m, other) = (min(part, key=lambda row: row[1]) for part in (ordered[:half], ordered[half:]))
    each = (other - us) / (m - n)
    return _crossing(us - each * n, each)


def fit_cost__the_middle_slope(ledger, noise):
    """Theil and Sen: half of all pairs must be undisturbed, which two thirds of the points do not make."""
    slopes = sorted((other - us) / (m - n) for (n, us), (m, other) in itertools.combinations(ledger, 2) if n != m)
    each = slopes[len(slopes) // 2]
    rests = sorted(us - each * n for n, us in ledger)
    return _crossing(rests[len(rests) // 2], each)


def cache_lines__by_addresses(shape, stride, offset, itemsize, line):
    """Right: one dictionary from index to line."""
    indices = list(itertools.product(*map(range, shape)))
    of = {
        index: (offset + sum(i * step for i, step in zip(index, stride, strict=True))) * itemsize // line
        for index in indices
    }
    best = None
    for order in itertools.permutations(range(len(shape))):
        walked = [of[i] for i in sorted(indices, key=lambda index: [index[dim] for dim in order])]
        fetches = len(list(itertools.groupby(walked)))
        if best is None or fetches < best[0]:
            best = fetches, order
    return len(set(of.values())), *best


def cache_lines__order_by_stride(shape, stride, offset, itemsize, line):
    order = sorted(range(len(shape)), key=lambda dim: (-stride[dim], dim))
    walked = [
        (offset + sum(i * stride[dim] for i, dim in zip(index, order, strict=True))) * itemsize // line
        for index in itertools.product(*(range(shape[dim]) for dim in order))
    ]
    return len(set(walked)), len(list(itertools.groupby(walked))), order


def cache_lines__only_the_span(shape, stride, offset, itemsize, line):
    if 0 in shape:
        return 0, 0, tuple(range(len(shape)))
    last = offset + sum((n - 1) * step for n, step in zip(shape, stride, strict=True))
    lines = last * itemsize // line - offset * itemsize // line + 1
    return lines, lines, tuple(range(len(shape)))


RIGHT = [
    ("broadcast_shapes", "by filling", broadcast_shapes__by_filling),
    ("result_type", "by a table", result_type__by_a_table),
    ("coalesce_dimensions", "ones taken out", coalesce_dimensions__ones_taken_out),
    ("two_streams", "to the limit", two_streams__to_the_limit),
    ("fit_cost", "the median deviation", fit_cost__the_median_deviation),
    ("cache_lines", "by addresses", cache_lines__by_addresses),
]

WRONG = [
    ("result_type", "the widest", result_type__widest_kind_first),
    ("output_strides", "sorted by the first", _sorted(lambda strides, dim: strides[0][dim])),
    ("output_strides", "sorted by all", _sorted(lambda strides, dim: [each[dim] for each in strides])),
    ("output_strides", "sorted by the sum", _sorted(lambda strides, dim: sum(each[dim] for each in strides))),
    ("coalesce_dimensions", "contiguous or nothing", coalesce_dimensions__contiguous_or_nothing),
    ("run_streams", "one clock", run_streams__as_one_clock),
    ("two_streams", "one stream", lambda kernels, limit: one_stream(kernels)),
    ("two_streams", "whichever is free", two_streams__whichever_is_free),
    ("two_streams", "whichever has less work", two_streams__whichever_has_less_work),
    ("two_streams", "right by luck", two_streams__right_by_luck),
    ("fit_cost", "least squares", fit_cost__least_squares),
    ("fit_cost", "least and largest", fit_cost__least_and_largest),
    ("fit_cost", "the two fastest ends", fit_cost__the_two_fastest_ends),
    ("fit_cost", "the middle slope", fit_cost__the_middle_slope),
    ("cache_lines", "order by stride", cache_lines__order_by_stride),
    ("cache_lines", "only the span", cache_lines__only_the_span),
]
