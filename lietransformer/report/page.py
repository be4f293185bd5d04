"""The page that the report stands on: one file, without anything from elsewhere."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

_PIXELS_PER_INCH = 140
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5b6875; --line: #dde3e9;
  --back: #ffffff; --tint: #f5f7f9; --link: #0b5c94; --good: #00664a; --good-back: #d3efe5;
  --bad: #9c3d00; --bad-back: #fbdcc8; --open: #4d5863; --open-back: #e3e8ed; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --soft: #a3afba; --line: #38424d;
  --back: #14191f; --tint: #1e252d; --link: #79b8ea; --good: #7fe0bd; --good-back: #0c3d2f;
  --bad: #ffb48a; --bad-back: #55270c; --open: #bcc6cf; --open-back: #2c353f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1rem; color: var(--ink);
  background: var(--back); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { line-height: 1.2; margin: 0 0 .2rem; }
h2 { margin-top: 3rem; border-bottom: 2px solid var(--line); }
nav a { margin-right: 1rem; white-space: nowrap; }
a { color: var(--link); }
code { background: var(--tint); padding: .1rem .3rem; border-radius: .2rem; font-size: .9em; }
p, ul, details, figcaption { max-width: 64rem; }
figure { margin: 2rem 0; }
figure img, .first img { max-width: 100%; height: auto; display: block; background: #fff; }
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
tr.bad > * { background: var(--bad-back); color: var(--bad); font-weight: bold; }
.small { color: var(--soft); font-size: .75rem; font-weight: normal; }
.missing { color: var(--soft); font-style: italic; }
.verdict { display: inline-block; padding: 0 .5rem; border-radius: 1rem; font-size: .85rem;
  border: 1px solid; white-space: nowrap; }
.reproduced { color: var(--good); background: var(--good-back); }
.reduced { color: var(--good); background: repeating-linear-gradient(135deg,
  var(--good-back) 0 .3rem, var(--back) .3rem .6rem); }
.refuted { color: var(--bad); background: var(--bad-back); }
.inconclusive { color: var(--open); background: var(--open-back); }
.not-run { color: var(--soft); background: var(--back); }
details { border-bottom: 1px solid var(--line); padding: .5rem 0; }
summary { cursor: pointer; }
.banner { border-left: .3rem solid var(--line); background: var(--tint); padding: .4rem .8rem;
  margin: .5rem 0; font-size: .9rem; max-width: none; }
.banner.bad { border-color: var(--bad); background: var(--bad-back); color: var(--bad); }
.banner.good { border-color: var(--good); }
.bar { display: flex; height: 2.2rem; margin: .8rem 0 .3rem; gap: 2px; }
.bar span { display: flex; align-items: center; justify-content: center; min-width: 1.6rem;
  border: 1px solid; border-radius: .3rem; font-weight: bold; overflow: hidden; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: 0 0 .8rem; padding: 0;
  list-style: none; font-size: .9rem; }
.key i { display: inline-block; width: .9rem; height: .9rem; margin-right: .35rem;
  border: 1px solid; border-radius: .2rem; vertical-align: -.1rem; }
.first { display: grid; grid-template-columns: minmax(0, 24rem) minmax(0, 1fr); gap: 1.5rem;
  align-items: start; margin-top: 1rem; }
.first table { font-size: .76rem; }
.first .small { font-size: .7rem; }
.first th, .first td { padding: .25rem .35rem; }
.first td > span.small { display: block; }
.first h2 { margin: 0 0 .4rem; font-size: 1.05rem; border: 0; }
@media (max-width: 70rem) { .first { grid-template-columns: minmax(0, 1fr); } }
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
    """A picture inside the page, scaled so that all pictures have the same font size."""
    data = b64encode(content).decode("ascii")
    width = round(inches * _PIXELS_PER_INCH)
    return f'<img width="{width}" alt="{escape(description)}" src="data:image/png;base64,{data}">'


def notes(lines: Iterable[str]) -> str:
    """Small print."""
    return f'<p class="notes">{"<br>".join(escape(line) for line in lines)}</p>'


def plain_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], bad: Sequence[str] = ()
) -> str:
    """A table of text; its first column names the row. Rows with a cell among `bad` stand out."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "\n".join(
        ('<tr class="bad">' if set(bad) & set(row) else "<tr>")
        + "".join(
            f"<{tag}>{escape(cell)}</{tag}>"
            for tag, cell in zip(["th"] + ["td"] * (len(row) - 1), row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def stacked_bar(counts: Iterable[tuple[str, str, int]], what: str) -> str:
    """Parts of a whole as one bar, each a name, a class of the style and a count, with a key."""
    listed = list(counts)
    words = ", ".join(f"{count} {name}" for name, _, count in listed)
    total = sum(count for *_, count in listed)
    parts = "".join(
        f'<span class="{style}" style="flex-grow: {count}" title="{escape(name)}">{count}</span>'
        for name, style, count in listed
        if count
    )
    key = "".join(
        f'<li><i class="{style}"></i><b>{count}</b> {escape(name)}</li>'
        for name, style, count in listed
    )
    label = escape(f"Of {total} {what}: {words}.")
    return (
        f'<div class="bar" role="img" aria-label="{label}">{parts}</div><ul class="key">{key}</ul>'
    )


def banner(text: str, style: str = "") -> str:
    """A line that stands out."""
    return f'<p class="banner {style}">{text}</p>'
