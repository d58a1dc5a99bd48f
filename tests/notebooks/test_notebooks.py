"""Facts about every notebook: valid, normalised, short-celled, asking first, and true when executed."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from reading import (
    NOTEBOOKS,
    ROOT,
    answers,
    asserts,
    cannot_fail,
    code,
    headings,
    lines_of_code,
    links,
    own_cells,
    pasted_output,
    predictions,
    prose,
    sections,
)

from glassbox.start import SECTIONS

Notebook = nbformat.NotebookNode


def test_the_start_page_and_the_notebook_of_each_section_are_here() -> None:
    assert {"00_start", *(section.notebook for section in SECTIONS)} <= {path.stem for path in NOTEBOOKS}


def test_it_is_valid_nbformat_4_5(notebook: Notebook) -> None:
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    nbformat.validate(notebook)


def test_it_is_written_in_the_one_normal_form(path: Path, notebook: Notebook) -> None:
    assert path.read_text(encoding="utf-8") == nbformat.writes(notebook, indent=1) + "\n"


def test_it_holds_nothing_of_a_machine(notebook: Notebook) -> None:
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    folded = {p.cell for p in predictions(notebook)} | {cell.id for cell in answers(notebook)}
    assert [cell.id for cell in notebook.cells if cell.metadata and cell.id not in folded] == []


def test_a_cell_that_asks_is_folded_and_does_nothing_else(notebook: Notebook) -> None:
    asking = {p.cell for p in predictions(notebook)}
    for cell in code(notebook):
        if cell.id in asking:
            assert cell.metadata == {"jupyter": {"source_hidden": True}}, cell.id
            assert len(ast.parse(cell.source).body) == 1 and cell.source.startswith("predict("), cell.id
            # a folded cell still shows its first line
            assert "because" not in cell.source.splitlines()[0], cell.id


def test_a_cell_that_answers_a_puzzle_is_folded_and_says_what_it_holds(notebook: Notebook) -> None:
    for cell in answers(notebook):
        assert cell.metadata == {"jupyter": {"source_hidden": True}}, cell.id
        assert re.match("# the answer to .*\n", cell.source), cell.id


def test_a_puzzle_is_announced_with_the_place_of_its_answer(notebook: Notebook) -> None:
    puzzles = [cell.source for cell in prose(notebook) if re.search("puzzle", cell.source, re.IGNORECASE)]
    assert len(puzzles) == len(answers(notebook))
    assert [p for p in puzzles if "folded cell" not in p] == []


def test_it_holds_no_outputs_and_no_counts(notebook: Notebook) -> None:
    assert [cell.id for cell in code(notebook) if cell.outputs or cell.execution_count is not None] == []


def test_its_cell_ids_are_words_and_unique(notebook: Notebook) -> None:
    ids = [cell.id for cell in notebook.cells]
    assert [i for i in ids if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", i)] == []
    assert len(set(ids)) == len(ids)


def test_its_cells_are_short(notebook: Notebook) -> None:
    assert [(cell.id, n) for cell in code(notebook) if (n := lines_of_code(cell.source)) > 14] == []
    assert [cell.id for cell in code(notebook) if max(map(len, cell.source.splitlines())) > 110] == []
    assert [cell.id for cell in notebook.cells if not cell.source.strip()] == []


def test_its_headings_have_a_structure(notebook: Notebook) -> None:
    found = headings(notebook)
    levels = [level for level, _ in found]
    assert notebook.cells[0].source.startswith("# ")
    assert levels.count(1) == 1 and levels.count(2) >= 3 and max(levels) <= 3
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))
    assert len({title for _, title in found}) == len(found)


def test_a_heading_begins_its_cell(notebook: Notebook) -> None:
    inside = [cell.id for cell in prose(notebook) if re.search(r"\n#{1,6} ", cell.source)]
    assert inside == []


def test_its_prose_holds_no_outputs(notebook: Notebook) -> None:
    assert [cell.id for cell in prose(notebook) if pasted_output(cell.source)] == []


def test_its_links_lead_somewhere(path: Path, notebook: Notebook) -> None:
    relative = [t for t in links(notebook) if not t.startswith(("http://", "https://", "#"))]
    targets = [(path.parent / unquote(t.split("#")[0])).resolve() for t in relative]
    assert [t for t in targets if not t.exists()] == []
    assert [t for t in targets if not t.is_relative_to(ROOT)] == []


def test_what_is_often_told_wrong_is_marked_in_one_form(notebook: Notebook) -> None:
    """A quoted paragraph is for nothing else: the usual claim, then what was just seen."""
    quoted = [line for cell in prose(notebook) for line in cell.source.splitlines() if line.startswith(">")]
    form = r"> \*\*Often told otherwise\.\*\* .{20,}"
    assert [line for line in quoted if not re.fullmatch(form, line)] == []


def test_the_notebook_of_a_section_ends_with_a_check_of_six_to_eight_predictions(
    path: Path, notebook: Notebook
) -> None:
    checks = [cells for cells in sections(notebook) if cells[0].source.startswith("## Check yourself")]
    asked = [sum("predict(" in cell.source for cell in cells if cell.cell_type == "code") for cells in checks]
    # The review, which has no lab, asks in its own way.
    if path.stem in {section.notebook for section in SECTIONS if section.lab}:
        assert len(asked) == 1 and 6 <= asked[0] <= 8


def test_its_asserts_can_fail(notebook: Notebook) -> None:
    idle = [(cell.id, ast.unparse(a)) for cell in code(notebook) for a in asserts(cell.source) if cannot_fail(a.test)]
    assert idle == []


def test_each_section_that_asks_also_proves(notebook: Notebook) -> None:
    bare = []
    for cells in sections(notebook):
        sources = [cell.source for cell in cells if cell.cell_type == "code"]
        asks = sum("predict(" in source for source in sources)
        proofs = sum(1 for source in sources for _ in asserts(source))
        if asks > proofs:
            bare.append(cells[0].id)
    assert bare == []


def test_its_predictions_give_a_reason(notebook: Notebook) -> None:
    asked = predictions(notebook)
    assert asked
    assert [p.cell for p in asked if len(p.because) < 20] == []


def test_it_runs_from_top_to_bottom(executed: Notebook) -> None:
    failed = [
        (cell.id, output.ename, output.evalue)
        for cell in own_cells(executed)
        for output in cell.outputs
        if output.output_type == "error"
    ]
    assert failed == []
    assert [cell.id for cell in own_cells(executed) if cell.execution_count is None] == []


def test_it_says_nothing_on_stderr(executed: Notebook) -> None:
    said = [
        (cell.id, output.text)
        for cell in own_cells(executed)
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stderr"
    ]
    assert said == []


def test_what_it_shows_survives_a_static_export(executed: Notebook) -> None:
    shown = [
        (cell.id, output.data)
        for cell in own_cells(executed)
        for output in cell.outputs
        if output.output_type in ("execute_result", "display_data")
    ]
    assert shown
    lasting = ("text/html", "text/markdown", "image/png")
    assert [i for i, data in shown if not any(data.get(kind) for kind in lasting)] == []


def test_each_prediction_can_be_evaluated_where_it_stands(notebook: Notebook, executed: Notebook) -> None:
    asked, given = predictions(notebook), _answers(executed)
    assert sorted(given) == list(range(len(asked)))
    broken = [(asked[k].cell, a) for k, a in given.items() if a["raised"] in ("NameError", "SyntaxError")]
    assert broken == []


def test_each_prediction_with_choices_has_one_right_choice(notebook: Notebook, executed: Notebook) -> None:
    asked, given = predictions(notebook), _answers(executed)
    odd = [(p.cell, given[k]) for k, p in enumerate(asked) if p.choices and len(given[k]["right"]) != 1]
    assert odd == []


def test_a_prediction_without_choices_gives_a_value(notebook: Notebook, executed: Notebook) -> None:
    asked, given = predictions(notebook), _answers(executed)
    assert [(p.cell, given[k]) for k, p in enumerate(asked) if not p.choices and given[k]["raised"]] == []


def _answers(executed: Notebook) -> dict[int, dict[str, object]]:
    found = {}
    for cell in code(executed):
        if "prediction" in cell.metadata:
            printed = "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")
            found[cell.metadata["prediction"]] = json.loads(printed)
    return found


@pytest.mark.parametrize(
    "condition",
    ["True", "1 == 1", "x == x", "(x == 2, 'two')", "[x]", "x == 2 or True", "f'{x}'", "'text'", "not False"],
)
def test_an_assert_that_cannot_fail_is_recognised(condition: str) -> None:
    assert cannot_fail(ast.parse(condition, mode="eval").body)


@pytest.mark.parametrize("condition", ["x == 1", "x", "f(x)", "x.y == x.z", "not x", "x == 1 and True", "f(1) == f(2)"])
def test_an_assert_that_can_fail_is_let_be(condition: str) -> None:
    assert not cannot_fail(ast.parse(condition, mode="eval").body)


@pytest.mark.parametrize("text", [">>> a + b", "Out[3]: 7", "so:\ntensor([1., 2.])", "RuntimeError: view size"])
def test_pasted_output_is_recognised(text: str) -> None:
    assert pasted_output(text)
    assert not pasted_output("The message names `RuntimeError`, and tensors are " + "plain.")
