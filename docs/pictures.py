"""Makes the READMEs' pictures: python docs/pictures.py

The root's are drawn with the course's own figures. Those of the classroom are what the browser tests saw
last, in test-artifacts/classroom, made small.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torchvision
from PIL import Image

from glassbox import draw, mini, xray
from glassbox.draw import Svg

HERE = Path(__file__).resolve().parent
THEMES = {"light": "", "dark": "-dark"}


def storage() -> Svg:
    a = mini.arange(12, dtype=mini.float32).view(3, 4)
    views = {"A": a, "A.T": a.T, "A[1:, :2]": a[1:, :2]}
    return draw.views_over_storage([xray.view_of(t, name) for name, t in views.items()])


def dispatcher() -> Svg:
    """A matrix product under autocast, every kernel that runs for it."""

    def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu"):
            return x @ w

    return xray.onion(product, torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)).figure()


def autograd() -> Svg:
    a, b, c = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
    return xray.grad_graph((a + b) * c).figure()


def call_path() -> Svg:
    # compiled under a name of its own: the picture shows where the call stands, and that must be no folder of ours
    scope: dict[str, Any] = {}
    exec(compile("def plus(a, b):\n    return a + b\n", "your_code.py", "exec"), scope)
    return xray.call_path(scope["plus"], torch.ones(2, requires_grad=True), torch.ones(2)).figure()


def interception() -> Svg:
    torch.set_num_threads(1)
    model = torchvision.models.resnet18(weights=None).eval()
    return xray.profile(model, torch.rand(1, 3, 224, 224)).figure()


SECTIONS = (storage, dispatcher, autograd, call_path, interception)


def picture(section: Callable[[], Svg]) -> dict[str, str]:
    """file name -> SVG text, one for each theme."""
    figure, name = section(), section.__name__
    # A figure in a page needs an id that no other has; alone in a file a fixed one keeps the file the same.
    return {
        f"{name}{ending}.svg": re.sub(r"gb-[0-9a-f]{10}", f"gb-{name}", figure.with_theme(theme).text) + "\n"
        for theme, ending in THEMES.items()
    }


def classroom() -> list[Path]:
    """Makes docs/classroom anew from the tests' pictures, in few colours; returns its files."""
    made = []
    for path in sorted((HERE.parent / "test-artifacts" / "classroom").glob("*.png")):
        target = HERE / "classroom" / path.name
        target.parent.mkdir(exist_ok=True)
        with Image.open(path) as seen:
            small = seen.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        small.save(target, optimize=True)
        made.append(target)
    return made


if __name__ == "__main__":
    for made in classroom():
        print(made)
    for section in SECTIONS:
        for name, text in picture(section).items():
            (HERE / name).write_text(text, encoding="utf-8")
            print(HERE / name)
