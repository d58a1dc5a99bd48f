"""Facts about the start page's words: each is one that the notebooks really use, and none stands twice."""

from __future__ import annotations

import re

import nbformat
import pytest
from reading import NOTEBOOKS

START = next(path for path in NOTEBOOKS if path.stem == "00_start")


def words() -> list[tuple[str, str, str]]:
    """The glossary's rows: term, Chinese name, meaning."""
    cells = [c for c in nbformat.read(START, 4).cells if c.id.startswith("words-")]
    lines = [line for c in cells for line in c.source.splitlines() if line.startswith("| ")]
    rows = [tuple(part.strip() for part in line.strip("|").split(" | ")) for line in lines]
    return [row for row in rows if row[0] not in ("term", "---")]


def test_each_row_has_a_term_a_chinese_name_and_a_meaning() -> None:
    found = words()
    assert len(found) >= 50
    assert [row for row in found if len(row) != 3 or not all(row)] == []
    assert [row for row in found if not re.search("[\u4e00-\u9fff]", row[1])] == []


def test_no_term_stands_twice() -> None:
    terms = [row[0].lower() for row in words()]
    assert sorted({t for t in terms if terms.count(t) > 1}) == []


@pytest.mark.parametrize("term", [row[0] for row in words()])
def test_the_notebooks_use_it(term: str) -> None:
    others = [nbformat.read(path, 4) for path in NOTEBOOKS if path != START]
    said = " ".join(cell.source for notebook in others for cell in notebook.cells)
    assert re.search(rf"\b{re.escape(term)}", said, re.IGNORECASE), term
