"""The page on which answers are graded by hand: whatever a submission holds is shown, and none of it runs."""

from __future__ import annotations

import base64
import binascii
import copy
import re
from typing import Any

from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell

from .. import labs, pages, prose
from ..cells import is_check

MATHJAX = re.compile(r'<script src="https://[^"]*/mathjax/[^"]*">')
# The fonts that come with jupyter_server_mathjax; by default MathJax asks for others first.
FONTS = """<script type="text/x-mathjax-config">
MathJax.Hub.Config({"HTML-CSS": {
  availableFonts: [], imageFont: null, preferredFont: null, webFont: "STIX-Web"
}});
</script>
"""
OURS = "glassbox_ours"
LOOK = """<style>
pre.code .keyword { color: #008000; font-weight: bold; }
pre.code .string { color: #ba2121; }
pre.code .remark { color: #408080; font-style: italic; }
</style>
"""


class InertExporter(HTMLExporter):
    """Exports that page with the MathJax that this server has, in light colours, and without anything of a
    submission that could act: it is shown on the address at which its reader is signed in.
    """

    def __init__(self, served: dict[str, Any], **options: Any) -> None:
        super().__init__(**options)
        self._served = served
        # pygments takes seconds for some short texts that are made to hurt.
        self.filters["highlight_code"] = lambda source, *rest, **more: prose.code(source)

    def from_notebook_node(
        self, nb: NotebookNode, resources: Any = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page, and nbconvert's resources."""
        resources = resources or {}
        lab = resources.get("assignment_id", "")
        cells = pages.master(lab).cells if lab in labs.known() else []
        resources[OURS] = {cell.source for cell in cells if cell.cell_type == "markdown"}
        page, resources = super().from_notebook_node(inert(nb), resources, **options)
        # Looked up late: the extension that serves it is loaded after this one.
        address = f"{self._served['mathjax_url']}?config={self._served['mathjax_config']}"
        page = MATHJAX.sub(lambda _: f'{LOOK}{FONTS}<script src="{address}">', page)
        # It is white whatever the system's colours are, and so should the drawings in it be.
        return page.replace("<body>", '<body data-jp-theme-light="true">', 1), resources

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """The lab's own words as they were written; a student's without HTML and other links, their pictures
        after them.
        """
        if source in context.get("resources", {}).get(OURS, ()):
            return str(super().markdown2html(context, source))
        pictures = context.get("cell", {}).get("attachments", {}).values()
        shown = "".join(
            f'<p><img src="data:{kind};base64,{data}" alt="a picture in the answer"></p>'
            for picture in pictures
            for kind, data in picture.items()
        )
        return prose.markdown(source, below=0) + shown


def inert(notebook: NotebookNode) -> NotebookNode:
    """A copy of an autograded notebook: all outputs of the judge, of the others what is only looked at."""
    shown = copy.deepcopy(notebook)
    shown.metadata = NotebookNode()
    cells = []
    for cell in shown.cells:
        record = cell.metadata.get("nbgrader")
        if cell.cell_type == "raw":
            cell = new_code_cell(cell.source)
        elif cell.cell_type == "code":
            cell.outputs = cell.outputs if is_check(cell) else [plain(output) for output in cell.outputs]
        cell.metadata = NotebookNode({"nbgrader": record} if record else {})
        attached = cell.pop("attachments", {}) if cell.cell_type == "markdown" else {}
        if attached:
            cell.attachments = {name: _pictures(data) for name, data in attached.items()}
        cells.append(cell)
    shown.cells = cells
    return shown


def plain(output: NotebookNode) -> NotebookNode:
    """An output without what could act: its text, and its picture where it is one."""
    if output.output_type in ("display_data", "execute_result"):
        text = {kind: value for kind, value in output.data.items() if kind == "text/plain"}
        output.data = NotebookNode({**text, **_pictures(output.data)})
        output.metadata = NotebookNode()
    return output


def _pictures(data: dict[str, Any]) -> dict[str, str]:
    """The pictures among data by their kinds, in base64."""
    kept = {}
    for kind in ("image/png", "image/jpeg"):
        text = data.get(kind)
        try:
            base64.b64decode("".join(text.split()) if isinstance(text, str) else "?", validate=True)
        except (binascii.Error, ValueError):
            continue
        kept[kind] = "".join(str(text).split())
    return kept
