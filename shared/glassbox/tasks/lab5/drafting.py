"""Lab 5: programs as they are written for a case, line by line, with the shape of each tensor known beforehand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from ..model import Case, Draw

Ints = tuple[int, ...]

NAMES = tuple("abcdefghjkmnpqrsuvwxyz")
UNARY = ("relu", "exp", "neg", "sigmoid", "tanh", "cos", "abs", "square")
IN_PLACE = ("relu_", "neg_", "cos_", "abs_", "tanh_")


class Draft:
    """A program in the making. `lines` are those of its body, `shapes` has the float32 tensors it has so far."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.shapes: dict[str, Ints] = {}
        self._free = list(NAMES)
        rng.shuffle(self._free)

    def let(self, expression: str, shape: Ints) -> str:
        """Adds a line that gives `expression` a name of its own; returns the name."""
        name = self._free.pop()
        self.lines.append(f"{name} = {expression}")
        self.shapes[name] = shape
        return name

    def fresh(self, *shape: int) -> str:
        """A new tensor of this shape; without one, of two dimensions."""
        shape = shape or self.size(2)
        maker = self.rng.choice(("ones", "zeros", "rand"))
        return self.let(f"torch.{maker}({', '.join(map(str, shape))})", shape)

    def size(self, ndim: int) -> Ints:
        """Sizes that differ from each other."""
        return tuple(self.rng.sample(range(2, 9), ndim))

    def any(self, ndim: int | None = None) -> str:
        """One of the tensors so far, the later ones more often; a new one where none has so many dimensions."""
        fitting = [name for name, shape in self.shapes.items() if ndim in (None, len(shape))]
        if not fitting:
            return self.fresh(*self.size(2 if ndim is None else ndim))
        return self.rng.choice([*fitting, *fitting[-2:]])

    def pointwise(self) -> str:
        """A line with one pointwise operator."""
        rng, one = self.rng, self.any()
        shape = self.shapes[one]
        same = [name for name, other in self.shapes.items() if other == shape]
        other = rng.choice([*same, *same, str(rng.randint(2, 9))])
        made = rng.choice(
            ("{a}.{u}()", "torch.{u}({a})", "{a} + {b}", "{a} * {b}", "{a} - {b}", "torch.maximum({a}, {c})")
        )
        return self.let(made.format(a=one, b=other, c=rng.choice(same), u=rng.choice(UNARY)), shape)

    def product(self) -> str:
        """A matrix product; the second matrix may be a line of its own."""
        one = self.any(2)
        rows, inner = self.shapes[one]
        columns = self.rng.randint(2, 8)
        return self.let(f"{one} @ {self.fresh(inner, columns)}", (rows, columns))

    def reduction(self) -> str:
        """A sum or a mean over one dimension of two, or over all."""
        one = self.any(2)
        dim = self.rng.randint(0, 1)
        kept = (self.shapes[one][1 - dim],)
        how = self.rng.choice(("sum", "mean", "amax"))
        over = f"{how}({dim})", kept
        ways: tuple[tuple[str, Ints], ...] = (over, over, ("sum()", ()), ("mean()", ()))
        text, shape = self.rng.choice(ways)
        return self.let(f"{one}.{text}", shape)

    def view(self) -> str:
        """A view of a matrix."""
        one = self.any(2)
        rows, columns = self.shapes[one]
        ways: tuple[tuple[str, Ints], ...] = (
            ("t()", (columns, rows)),
            ("[1:]", (rows - 1, columns)),
            ("[0]", (columns,)),
            (f"unsqueeze({self.rng.randint(0, 2)})", ()),
            ("[:, 1]", (rows,)),
            (f"expand(3, {rows}, {columns})", (3, rows, columns)),
            ("detach()", (rows, columns)),
        )
        text, shape = self.rng.choice(ways)
        if rows < 3 and text == "[1:]":
            text, shape = "t()", (columns, rows)
        if text.startswith("unsqueeze"):
            dim = int(text[10])
            shape = (*(rows, columns)[:dim], 1, *(rows, columns)[dim:])
        return self.let(f"{one}{'' if text[0] == '[' else '.'}{text}", shape)

    def text(self, ending: str = "") -> str:
        """The whole program; `ending` is its last line, which by default returns the last tensor."""
        last = ending or f"return {next(reversed(self.shapes))}"
        return "\n".join(["def program():", *(f"    {line}" for line in (*self.lines, last))]) + "\n"


Write = Callable[[Draft], None]


def program(*writers: Write, ending: str = "", more: Sequence[Write] = (), count: int = 0) -> Draw:
    """Cases of one program: what these write, and `count` times what one of `more` writes, all in any order after a
    first tensor.
    """

    def draw(rng: random.Random) -> Case:
        draft = Draft(rng)
        draft.fresh()
        chosen = [*writers, *(rng.choice(more) for _ in range(count))]
        rng.shuffle(chosen)
        for write in chosen:
            write(draft)
        return (draft.text(ending),)

    return draw


def pointwise(draft: Draft) -> None:
    draft.pointwise()


def product(draft: Draft) -> None:
    draft.product()


def reduction(draft: Draft) -> None:
    draft.reduction()


def view(draft: Draft) -> None:
    draft.view()


def fresh(draft: Draft) -> None:
    draft.fresh()
