"""Lab 3: other ways of thinking than the solutions' own, some right and some short cuts."""

import cmath
import heapq
import itertools
import math


def unbroadcast__by_filling(shape, grad_shape):
    """Right: ones in front, then every pair is asked."""
    if len(shape) > len(grad_shape):
        return None
    lead = len(grad_shape) - len(shape)
    pairs = list(zip((None,) * lead + tuple(shape), grad_shape, strict=True))
    if any(n not in (None, 1, m) for n, m in pairs):
        return None
    return [dim for dim, (n, m) in enumerate(pairs) if n is None or n != m]


def product_backward__element_by_element(op, grad, a, b, shapes):
    """Right: each product of two numbers hands its gradient to both."""
    found = [None if shape is None else [[0] * shape[1] for _ in range(shape[0])] for shape in shapes]
    rows, columns = len(grad), len(grad[0])
    inner = 1
    if op == "mm":
        inner = len(a[0]) if a is not None else len(b)

    def place(values, shape, i, j):
        height, width = (len(values), len(values[0])) if values is not None else shape
        return (i if height > 1 else 0), (j if width > 1 else 0)

    for i, j, k in itertools.product(range(rows), range(columns), range(inner)):
        at_a = (i, k) if op == "mm" else place(a, shapes[0], i, j)
        at_b = (k, j) if op == "mm" else place(b, shapes[1], i, j)
        if found[0] is not None:
            found[0][at_a[0]][at_a[1]] += grad[i][j] * b[at_b[0]][at_b[1]]
        if found[1] is not None:
            found[1][at_b[0]][at_b[1]] += grad[i][j] * a[at_a[0]][at_a[1]]
    return found


def unary_backward__softmax_by_its_matrix(op, grad, saved):
    """Right: the whole matrix of derivatives of one row, times the gradient."""
    if op == "sum":
        (rows, columns), dim, keepdim = saved
        flat = [grad] if dim is None else [n for line in grad for n in (line if keepdim else [line])]
        return [[flat[{None: 0, 0: j, 1: i}[dim]] for j in range(columns)] for i in range(rows)]
    if op == "relu":
        return [[(y > 0) * g for g, y in zip(gs, ys, strict=True)] for gs, ys in zip(grad, saved, strict=True)]
    rows, dim = saved
    lines = list(zip(*rows, strict=True)) if dim == 0 else rows
    gradients = list(zip(*grad, strict=True)) if dim == 0 else grad
    made = []
    for y, g in zip(lines, gradients, strict=True):
        size = range(len(y))
        slopes = [[y[i] * ((i == j) - y[j]) for j in size] for i in size]
        made.append([sum(slopes[j][i] * g[j] for j in size) for i in size])
    return list(zip(*made, strict=True)) if dim == 0 else made


def count_dependencies__in_two_steps(roots, next_edges):
    """Right: first who takes part, then all their edges."""
    part = set(roots)
    for _ in next_edges:
        part |= {to for node in part for to in next_edges[node] if to is not None}
    counts = [0] * len(next_edges)
    for node in part:
        for to in next_edges[node]:
            if to is not None:
                counts[to] += 1
    return counts


def run_backward__with_a_heap(nodes, numbers, roots, grads):
    """Right: a heap, and edges looked up in both directions."""
    part, grads = {root for root, _ in roots}, list(grads)
    for _ in nodes:
        part |= {edge[0] for node in part for edge in nodes[node] if edge}
    left = {node: sum(bool(e) and e[0] == node for other in part for e in nodes[other]) for node in part}
    inbox = {node: [] for node in part}
    for root, start in roots:
        inbox[root].append(start)

    def entry(node):
        return (-math.inf if not nodes[node] else -numbers[node], node)

    heap = [entry(node) for node in part if not left[node]]
    heapq.heapify(heap)
    order = []
    while heap:
        node = heapq.heappop(heap)[1]
        order.append(node)
        got = sum(inbox[node]) if inbox[node] else None
        if not nodes[node] and got is not None:
            grads[node] = (grads[node] or 0) + got
        for edge in filter(None, nodes[node]):
            if got is not None and edge[1] is not None:
                inbox[edge[0]].append(edge[1] * got)
            left[edge[0]] -= 1
            if not left[edge[0]]:
                heapq.heappush(heap, entry(edge[0]))
    return order, grads


def run_backward__topological_sort(nodes, numbers, roots, grads):
    """Depth first, from the end back: a right order of dependencies, but not the engine's."""
    order, done, grads = [], set(), list(grads)

    def visit(node):
        if node in done:
            return
        done.add(node)
        for edge in nodes[node]:
            if edge:
                visit(edge[0])
        order.insert(0, node)

    for root, _ in roots:
        visit(root)
    got = dict.fromkeys(order)
    for root, start in roots:
        got[root] = (got[root] or 0) + start
    for node in order:
        if got[node] is None:
            continue
        if not nodes[node]:
            grads[node] = (grads[node] or 0) + got[node]
        for edge in nodes[node]:
            if edge and edge[1] is not None:
                got[edge[0]] = (got[edge[0]] or 0) + edge[1] * got[node]
    return order, grads


def run_backward__by_number_alone(nodes, numbers, roots, grads):
    """The largest number of those reached first, without counting."""
    return _by_number(nodes, numbers, roots, grads, lambda reached: max(reached, key=lambda n: numbers[n]))


def _by_number(nodes, numbers, roots, grads, choose):
    order, grads, got = [], list(grads), {}
    for root, start in roots:
        got[root] = got.get(root, 0) + start
    reached = set(got)
    leaves = set()
    while reached:
        steps = {node for node in reached if nodes[node]}
        if not steps:
            break
        node = choose(steps)
        reached.discard(node)
        order.append(node)
        for edge in filter(None, nodes[node]):
            reached.add(edge[0])
            if edge[1] is not None and node in got:
                got[edge[0]] = got.get(edge[0], 0) + edge[1] * got[node]
        if len(order) > 50:
            break
    leaves = {node for node in reached if not nodes[node]}
    for leaf in leaves:
        order.append(leaf)
        if leaf in got:
            grads[leaf] = (grads[leaf] or 0) + got[leaf]
    return order, grads


def trace_versions__versions_only(program):
    """A pass fails if any operand or result in the program was changed after it was used."""
    used, versions, seen = {}, {}, []
    for kind, name, *operands in program:
        versions.setdefault(name, 0)
        for each in (name, *operands):
            used.setdefault(each, versions.get(each, 0))
        if kind in ("add_", "step"):
            versions[name] += 1
        elif kind == "version":
            seen.append(versions[name])
        elif kind == "backward":
            seen.append("fine" if all(versions[each] == at for each, at in used.items()) else "changed")
            if seen[-1] != "fine":
                break
    return seen


def running_product__from_both_ends(x, grad):
    """Right, in linear time: what lies before, and what is still to come, divided by nothing."""
    before, products = 1, []
    for number in x:
        products.append((before, before * number))
        before *= number
    ahead, found = 0, []
    for place in reversed(range(len(x))):
        # ahead: the sum over later places of grad times the product of what lies between
        ahead = grad[place] + (x[place + 1] * ahead if place + 1 < len(x) else 0)
        found.insert(0, products[place][0] * ahead)
    return [product for _, product in products], found


def running_product__by_division(x, grad):
    """Short, and wrong at every zero."""
    result, product = [], 1
    for number in x:
        product *= number
        result.append(product)
    tail = [sum(g * r for g, r in zip(grad[i:], result[i:], strict=True)) for i in range(len(x))]
    return result, [total // number if number else 0 for total, number in zip(tail, x, strict=True)]


def dual_numbers__by_differences(program, inputs, tangents):
    """Moves the inputs a little: rounding and corners tell it from the truth."""

    def values(numbers):
        made = list(numbers)
        frozen = []
        for op, first, *rest in program:
            a = made[first]
            b = rest[0] if op == "pow" else made[rest[0]] if rest else None
            frozen.append(op == "detach")
            made.append(
                {
                    "add": lambda a=a, b=b: a + b,
                    "sub": lambda a=a, b=b: a - b,
                    "mul": lambda a=a, b=b: a * b,
                    "div": lambda a=a, b=b: a / b,
                    "pow": lambda a=a, b=b: a**b,
                    "sin": lambda a=a: math.sin(a),
                    "exp": lambda a=a: math.exp(a),
                    "log": lambda a=a: math.log(a),
                    "sqrt": lambda a=a: math.sqrt(a),
                    "relu": lambda a=a: max(a, 0.0),
                    "abs": lambda a=a: abs(a),
                    "maximum": lambda a=a, b=b: max(a, b),
                    "detach": lambda a=a: a,
                }[op]()
            )
        return made

    h = 1e-6
    up, down = (values([x + sign * h * t for x, t in zip(inputs, tangents, strict=True)]) for sign in (1, -1))
    return [(value, (p - q) / (2 * h)) for value, p, q in zip(values(inputs), up, down, strict=True)]


class _Dual:
    """Right: a number type of one's own."""

    def __init__(self, value, tangent=0.0):
        self.value, self.tangent = value, tangent

    def through(self, value, slope):
        return _Dual(value, slope * self.tangent)

    def __add__(self, other):
        return _Dual(self.value + other.value, self.tangent + other.tangent)

    def __sub__(self, other):
        return _Dual(self.value - other.value, self.tangent - other.tangent)

    def __mul__(self, other):
        return _Dual(self.value * other.value, self.tangent * other.value + self.value * other.tangent)

    def __truediv__(self, other):
        return self * other.through(1 / other.value, -1 / other.value**2)


def dual_numbers__as_a_type(program, inputs, tangents):
    made = [_Dual(*pair) for pair in zip(inputs, tangents, strict=True)]
    for op, first, *rest in program:
        a = made[first]
        v = a.value
        if op == "pow":
            made.append(a.through(v ** rest[0], rest[0] * v ** (rest[0] - 1) if rest[0] else 0.0))
        elif op == "maximum":
            b = made[rest[0]]
            chosen = a if v > b.value else b
            made.append(chosen if v != b.value else _Dual(v, (a.tangent + b.tangent) / 2))
        elif rest:
            b = made[rest[0]]
            made.append({"add": a.__add__, "sub": a.__sub__, "mul": a.__mul__, "div": a.__truediv__}[op](b))
        elif op in ("sin", "exp", "log", "sqrt"):
            # A step into the complex plane has no difference to lose digits in.
            made.append(a.through(getattr(math, op)(v), getattr(cmath, op)(complex(v, 1e-30)).imag / 1e-30))
        else:
            slope = {"relu": v > 0, "abs": (v > 0) - (v < 0), "detach": 0}[op]
            made.append(a.through({"relu": max(v, 0.0), "abs": abs(v), "detach": v}[op], slope))
    return [(each.value, each.tangent) for each in made]


def reversible_backward__halves_alone(blocks, outputs, grads):
    """Takes the layers off, but gives each half only its own gradient."""
    (one, two), of_weights = outputs, []
    for f, g in reversed(blocks):
        two = [b - max(0, sum(w * x for w, x in zip(row, one, strict=True))) for row, b in zip(g, two, strict=True)]
        one = [a - max(0, sum(w * x for w, x in zip(row, two, strict=True))) for row, a in zip(f, one, strict=True)]
        of_weights.insert(0, (f, g))
    return (one, two), grads, of_weights


def _value(expression, known):
    if isinstance(expression, str):
        return known[expression]
    if not isinstance(expression, tuple):
        return expression
    op, *rest = expression
    a, *b = (_value(each, known) for each in rest)
    if op in ("sin", "cos", "exp", "log", "sqrt"):
        return getattr(math, op)(a)
    return {
        "add": lambda: a + b[0],
        "sub": lambda: a - b[0],
        "mul": lambda: a * b[0],
        "div": lambda: a / b[0],
        "pow": lambda: a ** b[0],
        "maximum": lambda: max(a, b[0]),
        "minimum": lambda: min(a, b[0]),
        "neg": lambda: -a,
        "abs": lambda: abs(a),
        "relu": lambda: max(a, 0),
        "sign": lambda: (a > 0) - (a < 0),
        "step": lambda: float(a > 0),
    }[op]()


def _found(table, steps, grads):
    """On a grid that avoids round numbers, with these gradients."""
    wrong = set()
    for place, (forward, formulas, domains) in enumerate(table):
        axes = [[low + (high - low) * (i + 0.37) / steps for i in range(steps)] for _, low, high in domains]
        for point in itertools.product(*axes):
            known = dict(zip((name for name, *_ in domains), point, strict=True))
            result = _value(forward, known)
            for name, formula in formulas:
                ahead, behind = (_value(forward, {**known, name: known[name] + h}) for h in (1e-6, -1e-6))
                for grad in grads:
                    given = _value(formula, {**known, "result": result, "grad": grad})
                    if abs(given - grad * (ahead - behind) / 2e-6) > 1e-3 * max(1, abs(given)):
                        wrong.add((place, name))
    return sorted(wrong)


def wrong_derivatives__on_a_grid(table):
    return _found(table, 13, (-1.7, 2.3))


def wrong_derivatives__at_one(table):
    """At the middle of the domain, with the gradient that a loss begins with."""
    return _found(table, 1, (1.0,))


RIGHT = [
    ("unbroadcast", "by filling", unbroadcast__by_filling),
    ("product_backward", "element by element", product_backward__element_by_element),
    ("unary_backward", "softmax by its matrix", unary_backward__softmax_by_its_matrix),
    ("count_dependencies", "in two steps", count_dependencies__in_two_steps),
    ("run_backward", "with a heap", run_backward__with_a_heap),
    ("running_product", "from both ends", running_product__from_both_ends),
    ("dual_numbers", "as a type", dual_numbers__as_a_type),
    ("wrong_derivatives", "on a grid", wrong_derivatives__on_a_grid),
]

WRONG = [
    ("run_backward", "topological sort", run_backward__topological_sort),
    ("run_backward", "by number alone", run_backward__by_number_alone),
    ("trace_versions", "versions only", trace_versions__versions_only),
    ("running_product", "by division", running_product__by_division),
    ("dual_numbers", "by differences", dual_numbers__by_differences),
    ("reversible_backward", "halves alone", reversible_backward__halves_alone),
    ("wrong_derivatives", "at one", wrong_derivatives__at_one),
]
