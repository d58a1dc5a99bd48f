"""Lab 2: other ways of thinking than the solutions' own, some right and some short cuts."""

import math

from glassbox.mini.aten.core import function_schema


def key_set__of_sets(keys):
    return sum({1 << (15 + f) for f, _ in keys if f} | {1 << (b - 1) for _, b in keys if b})


def remove_key__by_parts(key_set, key):
    return (key_set >> 16 & ~(key >> 16)) << 16 | key_set % 65536


def highest_functionality__by_text(key_set):
    return len(f"{key_set >> 16:b}".lstrip("0"))


def compute_key_set__bit_by_bit(tensors, included, excluded):
    total = 0
    for place in range(64):
        there = any(keys >> place & 1 for keys in (*tensors, included))
        if there and not (place > 15 and excluded >> place & 1):
            total += 1 << place
    return total


def effective_key_set__from_the_top(key_set, fallthrough):
    backend = max((place for place in range(1, 17) if key_set >> (place - 1) & 1), default=0)
    left = key_set & 0xFFFF
    for place in range(1, 47):
        if key_set >> (15 + place) & 1 and not {(place, 0), (place, backend)} & set(fallthrough):
            left |= 1 << (15 + place)
    return left


def resolve_kernel__by_lists(key, registered, fallbacks):
    backends = {"CPU", "CUDA", "XPU", "PrivateUse1", "Meta", "SparseCPU", "SparseCUDA", "QuantizedCPU", "QuantizedCUDA"}
    small = {"SparseCPU", "SparseCUDA", "QuantizedCPU", "QuantizedCUDA"}
    explicit = "CompositeExplicitAutograd" in registered
    candidates = [(key, "kernel")]
    if key in backends | {"Undefined"}:
        if "Sparse" not in key:
            candidates.append(("CompositeExplicitAutogradNonFunctional", "default backend kernel"))
        candidates.append(("CompositeExplicitAutograd", "default backend kernel"))
        candidates.append(("CompositeImplicitAutograd", "math kernel"))
    elif key.startswith("Autograd"):
        below = small if key == "AutogradOther" else {key[8:]}
        if not below & set(registered):
            candidates += [] if explicit else [("CompositeImplicitAutograd", "math kernel")]
        elif key == "AutogradOther":
            candidates.append(("CompositeImplicitAutograd", "ambiguous autogradother"))
        candidates.append(("Autograd", "autograd kernel"))
    elif key == "FuncTorchBatched":
        candidates.append(("FuncTorchBatchedDecomposition", "batched kernel"))
    for name, reason in candidates:
        if name in registered:
            return name, reason
    return (key, "backend fallback") if key in fallbacks else None


def resolve_kernel__without_backends_below(key, registered, fallbacks):
    """Takes CompositeImplicitAutograd for any other alias: it fills every row that is empty, autograd's too."""
    if "CompositeImplicitAutograd" in registered and key.startswith("Autograd") and key not in registered:
        return "CompositeImplicitAutograd", "math kernel"
    return resolve_kernel__by_lists(key, registered, fallbacks)


def resolve_kernel__own_or_fallback(key, registered, fallbacks):
    if key in registered:
        return key, "kernel"
    return (key, "backend fallback") if key in fallbacks else None


ORDER = (
    *("PythonTLSSnapshot", "FuncTorchBatched", "AutocastCPU", "Tracer", "AutogradCPU", "ADInplaceOrView"),
    *("Functionalize", "Python", "BackendSelect", "CPU"),
)


def run_call__with_a_stack(tables, op, keys):
    """Right: one list of things to do, the next one last."""
    rows = {name: dict(kernels) for name, kernels in tables}
    hops, todo = [], [("call", op, None, frozenset(), 0)]
    while todo:
        what, name, left, excluded, depth = todo.pop()
        if what == "call":
            left = [key for key in ORDER if key in keys and key not in excluded]
            left = [key for key in left if rows[name].get(key) != "fallthrough"]
        if not left or left[0] not in rows[name]:
            return [*hops, (depth, name, None)]
        key = left[0]
        hops.append((depth, name, key))
        for step in reversed(rows[name][key]):
            *guard, step = step.split(", ")
            inside = excluded | {key} if guard else excluded
            what, *called = step.split()
            todo.append((what, *(called or [name]), left[1:], inside, depth + 1))
    return hops


def run_call__down_once(tables, op, keys):
    """Each key at most once, from the top to the bottom, whatever the kernels do."""
    rows = dict(dict(tables)[op])
    there = [key for key in ORDER if key in keys and rows.get(key) != "fallthrough"]
    return [(depth, op, key if key in rows else None) for depth, key in enumerate(there)]


def plan_casts__by_table(policy, device, lower, arguments, dtype):
    taking = [
        one is not None and one[0] == device and one[1] in ("float16", "bfloat16", "float32") for one in arguments
    ]
    old = [one and one[1] for one in arguments]
    if policy == "fp32_set_opt_dtype":
        return old, dtype or ("float32" if taking[0] else None)
    seen = [name for name, takes in zip(old, taking, strict=True) if takes]
    to = {"fp32": "float32", "lower_precision_fp": lower}.get(policy)
    if to is None:
        first = seen.index("float32") if "float32" in seen else len(seen)
        if any(name != lower for name in seen[:first]):
            raise RuntimeError
        to = "float32" if first < len(seen) else lower
    return [to if takes else name for name, takes in zip(old, taking, strict=True)], dtype


def plan_casts__lists_of_the_mini_framework(policy, device, lower, arguments, dtype):
    """Promotion as any two dtypes promote, which is what the mini-framework's autocast does."""
    try:
        return plan_casts__by_table(policy, device, lower, arguments, dtype)
    except RuntimeError:
        return plan_casts__by_table("fp32", device, lower, arguments, dtype)


def plan_casts__transcribed_from_autocast(policy, device, lower, arguments, dtype):
    """mini/modes/autocast.py on names of dtypes: is_eligible, its three policies, cached_cast."""
    eligible = [
        one is not None and one[0] == device and one[1] in ("float16", "bfloat16", "float32") for one in arguments
    ]
    to = lower if policy in ("lower_precision_fp", "promote") else "float32"
    if policy == "promote":
        for one, takes in zip(arguments, eligible, strict=True):
            # c10/promotion.py: two different ones of these three give float32.
            to = "float32" if takes and one[1] != to else to
    return tuple(to if takes else one and one[1] for one, takes in zip(arguments, eligible, strict=True)), dtype


def rewrite_call__parsed_and_bound(schema, args, kwargs, swaps):
    """mini's own parse, and what look_up of its binder does with keywords, defaults, int[2] and what does not fit."""
    parsed = function_schema.parse(schema)
    count = len(parsed.positional)
    if len(args) > count:
        raise RuntimeError
    given = dict(zip((argument.name for argument in parsed.positional), args, strict=False))
    known = {argument.name for argument in parsed.arguments}
    for name, value in kwargs:
        if name not in known or name in given:
            raise RuntimeError
        given[name] = value
    bound = []
    for argument in parsed.arguments:
        if argument.name not in given and not argument.has_default:
            raise RuntimeError
        value = given.get(argument.name, argument.default)
        alone = argument.type.size and not isinstance(value, tuple)
        bound.append((argument.name, (value,) * argument.type.size if alone else value))
    return tuple(value for _, value in bound[:count]), tuple(bound[count:])


def pick_rule__by_strides(batch_size, randomness, in_dim, shape, count, numbers):
    """Right: unravel into the example's own indices, put the example's number in, ravel."""
    if randomness == "error":
        raise RuntimeError
    own = list(shape) if in_dim is None else [*shape[:in_dim], *shape[in_dim + 1 :]]
    shared = in_dim is None and randomness == "same"
    positions = []
    for example in range(1 if shared else batch_size):
        first = example * count if randomness == "different" else 0
        for number in numbers[first : first + count]:
            rest, index = number % math.prod(own), []
            for size in reversed(own):
                index.insert(0, rest % size)
                rest //= size
            if in_dim is not None:
                index.insert(in_dim, example)
            at = 0
            for i, size in zip(index, shape, strict=True):
                at = at * size + i
            positions.append(at)
    return ((count,), None, positions) if shared else ((batch_size, count), 0, positions)


def pick_rule__moved_to_the_front(batch_size, randomness, in_dim, shape, count, numbers):
    """As if vmap had moved the batch dimension to the front."""
    moved = shape if in_dim is None else (batch_size, *shape[:in_dim], *shape[in_dim + 1 :])
    return pick_rule__by_strides(batch_size, randomness, in_dim and 0, moved, count, numbers)


def predict_hops__without_modes(program, state):
    """What an ordinary call does, whatever is on."""
    hops = []
    for call in program:
        for name, registered in call:
            if "BackendSelect" in registered:
                hops.append((name, "BackendSelect"))
            elif "Autograd" in registered or registered[:1] == ("CompositeImplicitAutograd",):
                hops.append((name, "AutogradCPU"))
            if "ADInplaceOrView" in registered:
                hops.append((name, "ADInplaceOrView"))
            if "CompositeImplicitAutograd" not in registered:
                hops.append((name, "CPU"))
    return hops


RIGHT = [
    ("key_set", "of sets", key_set__of_sets),
    ("remove_key", "by parts", remove_key__by_parts),
    ("highest_functionality", "by text", highest_functionality__by_text),
    ("compute_key_set", "bit by bit", compute_key_set__bit_by_bit),
    ("effective_key_set", "from the top", effective_key_set__from_the_top),
    ("resolve_kernel", "by lists", resolve_kernel__by_lists),
    ("run_call", "with a stack", run_call__with_a_stack),
    ("plan_casts", "by table", plan_casts__by_table),
    ("pick_rule", "by strides", pick_rule__by_strides),
]

WRONG = [
    ("resolve_kernel", "no backends below", resolve_kernel__without_backends_below),
    ("resolve_kernel", "own or fallback", resolve_kernel__own_or_fallback),
    ("run_call", "down once", run_call__down_once),
    ("plan_casts", "the mini-framework's", plan_casts__lists_of_the_mini_framework),
    ("pick_rule", "moved to the front", pick_rule__moved_to_the_front),
    ("predict_hops", "whatever is on", predict_hops__without_modes),
]

# What stands in the mini-framework, taken over as it is, and the properties that it wins.
TRANSCRIBED = [
    (
        "plan_casts",
        "mini's autocast",
        plan_casts__transcribed_from_autocast,
        {"policies that cast to one dtype", "the widest dtype of those that take part"},
    ),
    (
        "rewrite_call",
        "parsed and bound",
        rewrite_call__parsed_and_bound,
        {"arguments in the schema's order, defaults filled in"},
    ),
]
