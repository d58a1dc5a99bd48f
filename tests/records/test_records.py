"""Facts about StorageView and the tables that records are."""

import dataclasses

import pytest

from glassbox.records import (
    Graph,
    GraphNode,
    StorageView,
    Table,
    human_bytes,
    human_flops,
    human_us,
    markdown_table,
    text_table,
)
from glassbox.records.table import folded_table

A = StorageView.of_layout("A", (3, 4), (4, 1), size=12)
SLICE = StorageView.of_layout("A[1:, :2]", (2, 2), (4, 1), 4, size=12)
EXPANDED = StorageView.of_layout("e", (3, 4), (0, 1), size=4)


def test_cells_are_storage_positions_in_row_major_order():
    assert SLICE.cells() == (4, 5, 8, 9)
    assert StorageView.of_layout("t", (4, 3), (1, 4)).cells() == (0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11)
    assert EXPANDED.cells() == (0, 1, 2, 3) * 3
    assert StorageView.of_layout("s", (), (), 5).cells() == (5,)
    assert StorageView.of_layout("none", (0, 3), (3, 1)).cells() == ()


def test_address_counts_negative_indices_from_the_end():
    assert A.address((1, 2)) == 6
    assert A.address((-1, -1)) == 11
    assert SLICE.address((1, 1)) == 9


@pytest.mark.parametrize("index", [(3, 0), (0, -5), (1,), (1, 1, 1)])
def test_address_refuses_an_index_outside(index):
    with pytest.raises(IndexError):
        A.address(index)


def test_formula_spells_the_address():
    assert A.formula((1, 2)).removeprefix("A") == "[1,2] = storage[0 + 1*4 + 2*1] = storage[6]"
    assert SLICE.formula((-1, 1)) == "A[1:, :2][1,1] = storage[4 + 1*4 + 1*1] = storage[9]"
    assert StorageView.of_layout("s", (), (), 5).formula(()) == "s[()] = storage[5]"


def test_span_is_the_reach_of_the_strides():
    assert A.span() == (0, 12)
    assert SLICE.span() == (4, 10)
    assert StorageView.of_layout("none", (0, 3), (3, 1), 2, size=9).span() == (2, 2)
    assert StorageView.of_layout("back", (3,), (-2,), 5, size=9).span() == (1, 6)


@pytest.mark.parametrize(
    "view",
    [
        A,
        SLICE,
        EXPANDED,
        StorageView.of_layout("windows", (4, 3), (2, 1), 1, size=12),
        StorageView.of_layout("diagonal", (3,), (5,), size=12),
        StorageView.of_layout("back", (3, 2), (-3, 2), 7, size=12),
        StorageView.of_layout("deep", (2, 3, 2), (1, 2, 3), 1, size=12),
        StorageView.of_layout("none", (0,), (1,), 3, size=12),
        StorageView.of_layout("scalar", (), (), 3, size=12),
        StorageView.of_layout("one", (1, 1), (7, 9), 3, size=12),
    ],
    ids=lambda v: v.name,
)
def test_touches_agrees_with_the_listed_cells(view):
    assert [p for p in range(-1, 20) if view.touches(p)] == sorted(set(view.cells()))


def test_touches_is_quick_where_listing_would_not_be():
    huge = StorageView.of_layout("huge", (100_000, 100_000), (200_000, 1), 7)
    assert huge.touches(7 + 200_000 * 99_999 + 99_999)
    assert not huge.touches(7 + 100_000)


def test_bytes_of_view_and_storage():
    assert (SLICE.size, SLICE.nbytes, SLICE.numel, SLICE.tensor_nbytes) == (12, 48, 4, 16)


def test_shape_and_stride_must_fit():
    with pytest.raises(ValueError, match="one stride per dimension"):
        StorageView("x", (3, 4), (1,))
    with pytest.raises(ValueError, match="negative size"):
        StorageView("x", (-1,), (1,))


def test_a_view_is_frozen_and_takes_lists():
    view = StorageView("x", [2, 3], [3, 1], values=[1, 2])
    assert (view.shape, view.stride, view.values) == ((2, 3), (3, 1), (1, 2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        view.offset = 3


def test_views_print_as_one_line():
    assert str(SLICE) == (
        "A[1:, :2]: tensor, shape (2, 2), stride (4, 1), offset 4, float32, cpu, over 48 B of storage"
    )


def test_rows_become_markdown_text_and_html():
    rows = [{"a": 1, "b": "x|y"}, {"a": True, "b": None}]
    assert markdown_table(rows) == "| a | b |\n| --- | --- |\n| 1 | x\\|y |\n| yes |  |"
    assert text_table(rows) == "a    b\n1    x|y\nyes"
    html = StorageView.of_layout("<x>", (2,), (1,))._repr_html_()
    assert "&lt;x&gt;" in html
    assert "<x>" not in html
    assert markdown_table([]) == ""


def test_a_view_is_one_row_without_its_values():
    (row,) = StorageView.of_layout("x", (2,), (1,), values=[1.0, 2.0]).rows()
    assert row["shape"] == (2,)
    assert "values" not in row


@pytest.mark.parametrize(("n", "text"), [(0, "0 B"), (48, "48 B"), (999, "999 B"), (1000, "1 kB"), (4_000_000, "4 MB")])
def test_bytes_are_decimal(n, text):
    assert human_bytes(n) == text


class Lines(Table):
    """A record with rows of different keys and a wide cell."""

    def rows(self):
        return [{"call": 0, "type": "no tensor"}, {"call": 1, "mean": 0.25, "why": "because " * 20}]

    def shown(self):
        return [{"call": 0, "type": "no tensor"}, {"call": 1, "mean": "25 %", "why": "because " * 20}]

    def caption(self):
        return "two calls\nand a second line"


def test_a_table_has_a_column_for_every_key_of_any_row():
    text = str(Lines()).splitlines()
    assert text[2].split() == ["call", "type", "mean", "why"]
    assert Lines().to_markdown().startswith("| call | type | mean | why |")
    assert "25 %" in Lines()._repr_html_() and Lines().rows()[1]["mean"] == 0.25


def test_a_wide_cell_runs_over_several_lines():
    assert max(map(len, str(Lines()).splitlines())) < 120
    assert "".join(str(Lines()).split()).count("because") == 20
    assert Lines()._repr_html_().count("white-space:nowrap") == 7


def test_a_record_is_named_in_short_where_it_is_not_printed():
    assert repr(Lines()) == "<Lines: two calls>"
    graph = Graph((GraphNode(0, "AddBackward0", 1, ()),) * 500)
    assert repr(graph).startswith("<Graph: 500 nodes") and len(repr(graph)) < 200


@pytest.mark.parametrize(
    ("number", "written"),
    [(999.4, "999 us"), (999.7, "1 ms"), (999_700, "1 s"), (15_234.0, "15.2 ms"), (0.021, "0.021 us"), (None, "")],
)
def test_microseconds_stay_below_a_thousand_of_a_unit(number, written):
    assert human_us(number) == written


def test_numbers_beyond_the_last_unit_are_written_out():
    assert human_us(4_321_000_000.0) == "4321 s" and human_bytes(5_000_000_000_000_000) == "5000 TB"
    assert human_flops(999_999) == "1 M" and human_flops(0) == "0"


def test_a_folded_table_scrolls_by_itself_and_can_be_reached_by_the_keyboard():
    page = folded_table([{"a": 1}], "x & y", 2)
    inside = page.partition("</summary>")[2]
    assert inside.startswith('<div style="overflow-x:auto" tabindex="0" role="region" aria-label="x &amp; y"><table>')
    assert inside.endswith("</table></div><p>2 more rows in rows().</p></details>")
