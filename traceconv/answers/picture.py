"""The picture of a trace for notebooks: a strip of the whole time, and the summary of its report."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from traceconv.answers.figures import Bar, Plot, strip
from traceconv.answers.section import Report

#: The sections that a picture is made of.
PICTURED = ("summary", "device", "steps")
#: Colours by the class of a part, for light and dark pages, and of an outline.
_FILLS = {"odd": "#7d8ea3", "even": "#a9b5c4"}
_OUTLINE = "#4c7fe0"


@dataclass(frozen=True, slots=True)
class Picture:
    """What people see first of a trace: `Trace.show` returns it. Notebooks draw it; its text is the summary.

    Attributes:
        sections: the sections of the report that it is made of.
    """

    sections: Report

    def __repr__(self) -> str:
        """Return the sentences of the summary, and what cannot be answered."""
        return "\n".join(sentence for section in self.sections for sentence in section.sentences)

    def _repr_html_(self) -> str:
        """Return the strip and the sentences as HTML that needs no style of a page."""
        by_name = {section.name: section for section in self.sections}
        drawn = strip(by_name["steps"], by_name["device"].over_time)
        said = "".join(section._repr_html_() for section in self.sections if section.sentences)
        return f"{_drawing(drawn) if drawn else ''}{said}"


def _drawing(plot: Plot) -> str:
    row = "<tr><td>{}</td><td style='width: 60%'>{}</td><td style='white-space: nowrap'>{}</td></tr>"
    rows = "".join(row.format(escape(bar.label), _bar(bar), escape(bar.value)) for bar in plot.bars)
    return f"<h4>{escape(plot.title)}</h4><p>{escape(plot.caption)}</p><table style='width: 100%'>{rows}</table>"


def _bar(bar: Bar) -> str:
    """Return a row of a plot as SVG, stretched to the width of its cell."""
    parts = [f"<path d='{bar.outline}' fill='{_OUTLINE}'/>"] if bar.outline else []
    parts += [
        f"<rect x='{start}' width='{length}' height='100' fill='{_FILLS[css]}'><title>{escape(words)}</title></rect>"
        for css, start, length, words in bar.parts
    ]
    return (
        "<svg viewBox='0 0 100 100' preserveAspectRatio='none' width='100%' height='24' "
        f"style='background: #8883'>{''.join(parts)}</svg>"
    )
