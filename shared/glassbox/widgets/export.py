"""Static export: a page without a kernel shows each widget's figure (nbconvert's part; PyTorch has none).

nbconvert prefers a widget's live view, whose script comes from the network. Where an output has a text/html
form beside that view, `StaticFigures` leaves only the form; other outputs pass as they are.
"""

from __future__ import annotations

from typing import Any

from nbconvert.preprocessors import Preprocessor

VIEW = "application/vnd.jupyter.widget-view+json"


class StaticFigures(Preprocessor):
    """For `HTMLExporter.preprocessors`, as "glassbox.widgets.export.StaticFigures".

    Works on the copy that nbconvert makes, never on the file. The widgets' stored state goes too when no
    output needs it any more, since a page that has one asks the network for the scripts.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        outputs = [output for cell in nb.cells for output in cell.get("outputs", ())]
        live = [output.data for output in outputs if VIEW in output.get("data", ())]
        static = [data for data in live if data.get("text/html")]
        for data in static:
            del data[VIEW]
        if static and len(static) == len(live):
            nb.metadata.pop("widgets", None)
        return nb, resources
