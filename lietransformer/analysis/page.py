"""The page that the report stands on: one file, without anything from elsewhere."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

_PIXELS_PER_INCH = 140
_STYLE = """
:root { --ink: #1d2733; --soft: #5b6875; --line: #dde3e9; --back: #ffffff; --tint: #f5f7f9; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 64rem; padding: 1rem; color: var(--ink);
  background: var(--back); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { line-height: 1.2; margin-bottom: .2rem; }
h2 { margin-top: 3rem; border-bottom: 2px solid var(--line); }
nav a { margin-right: 1rem; white-space: nowrap; }
a { color: #0b5c94; }
code { background: var(--tint); padding: .1rem .3rem; border-radius: .2rem; font-size: .9em; }
figure { margin: 2rem 0; }
figure img { max-width: 100%; height: auto; display: block; }
@media (max-width: 45rem) { figure .wide img { max-width: none; } }
figcaption, .notes { color: var(--soft); font-size: .88rem; }
.wide { overflow-x: auto; overflow-wrap: normal; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td { text-align: right; white-space: nowrap; }
th { text-align: left; }
thead th { background: var(--tint); }
thead th + th { text-align: right; }
th.section { background: var(--tint); font-style: italic; font-weight: normal; }
.small { color: var(--soft); font-size: .75rem; font-weight: normal; }
.missing { color: var(--soft); font-style: italic; }
.verdict { display: inline-block; padding: 0 .5rem; border-radius: 1rem; font-size: .85rem;
  border: 1px solid; white-space: nowrap; }
.reproduced { color: #00664a; background: #e3f4ee; }
.refuted { color: #9c3d00; background: #fdeade; }
.undecided { color: #4d5863; background: #eef1f4; }
details { border-bottom: 1px solid var(--line); padding: .5rem 0; }
summary { cursor: pointer; }
.banner { border-left: .3rem solid #d55e00; background: #fdf3ec; padding: .6rem 1rem; }
.counts { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.5rem 0; }
.counts div { flex: 1 1 8rem; padding: .8rem 1rem; background: var(--tint); border-radius: .4rem; }
.counts b { display: block; font-size: 1.8rem; line-height: 1.2; }
@media print { details { break-inside: avoid; } }
"""


def page(title: str, sections: Sequence[tuple[str, str, str]], lead: str) -> str:
    """A whole page; sections are name of the link, heading and content."""
    links = " ".join(f'<a href="#{name}">{escape(heading)}</a>' for name, heading, _ in sections)
    bodies = "\n".join(
        f'<section id="{name}"><h2>{escape(heading)}</h2>\n{content}</section>'
        for name, heading, content in sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><header><h1>{escape(title)}</h1>\n{lead}\n<nav>{links}</nav></header>\n"
        f"<main>{bodies}</main></body></html>\n"
    )


def picture(content: bytes, description: str, inches: float) -> str:
    """A picture inside the page, so wide that all pictures have letters of the same size."""
    data = b64encode(content).decode("ascii")
    width = round(inches * _PIXELS_PER_INCH)
    return f'<img width="{width}" alt="{escape(description)}" src="data:image/png;base64,{data}">'


def notes(lines: Iterable[str]) -> str:
    """Small print."""
    return f'<p class="notes">{"<br>".join(escape(line) for line in lines)}</p>'


def plain_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text; its first column names the row."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "\n".join(
        "<tr>"
        + "".join(
            f"<{tag}>{escape(cell)}</{tag}>"
            for tag, cell in zip(["th"] + ["td"] * (len(row) - 1), row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'
