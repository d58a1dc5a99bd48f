"""Makes the READMEs' pictures: python docs/pictures.py

The root's are drawn with the course's own figures. Those of the classroom are what the browser tests saw
last, in test-artifacts/classroom, made small.
"""

import re
from pathlib import Path

from PIL import Image

from glassbox import draw, mini
from glassbox.xray import view_of

HERE = Path(__file__).resolve().parent
NAMES = {"light": "storage.svg", "dark": "storage-dark.svg"}


def pictures() -> dict[str, str]:
    """file name -> SVG text, one for each theme."""
    a = mini.arange(12, dtype=mini.float32).view(3, 4)
    views = [view_of(a, "A"), view_of(a.T, "A.T"), view_of(a[1:, :2], "A[1:, :2]")]
    figure = draw.views_over_storage(views)
    # A figure in a page needs an id that no other has; alone in a file a fixed one keeps the file the same.
    return {
        name: re.sub(r"gb-[0-9a-f]{10}", "gb-storage", figure.with_theme(theme).text) + "\n"
        for theme, name in NAMES.items()
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
    for name, text in pictures().items():
        (HERE / name).write_text(text, encoding="utf-8")
        print(HERE / name)
