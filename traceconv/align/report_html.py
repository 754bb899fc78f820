"""The report of an alignment as a page for people who have never heard of clock drift.

One file without scripts and without anything from elsewhere: it can be sent by mail and opened years later. The
pictures are SVG; colours follow the light or dark setting of the reader and never carry a meaning alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from traceconv.align.estimate import Method
from traceconv.align.svg import Axis, Plane, bars, padded, time_axis
from traceconv.clocks import Verdict
from traceconv.times import format_drift, format_short, format_time

Json = dict[str, Any]

_ROOM = 76  # px between the middles of labels
_MANY = 300  # dots: more of them are drawn paler

_SIGNS = {
    "ok": "✓",
    "assumed": "○",
    "unverified": "!",
    "ambiguous": "✕",
    "insufficient": "✕",
    "inconsistent": "✕",
    "separate": "✕",
}
_MEANINGS = {
    "ok": "The files themselves, or the events in them, leave one answer.",
    "assumed": "It rests on what you said or on an assumption; nothing in the files confirms it.",
    "unverified": "It was placed where it fits best, but the files cannot prove that this is the right place.",
    "ambiguous": "It fits about equally well in several places; choosing one would be a guess.",
    "insufficient": "The files have too little in common to tell where it belongs.",
    "inconsistent": "The statements about the clocks contradict each other or the events.",
    "separate": "Not aligned: it begins where the others begin, and its times have nothing to do with theirs.",
}
_HEADLINES = {
    "ok": "These recordings are on one time axis",
    "assumed": "These recordings are on one time axis, in part by assumption",
    "unverified": "These recordings are side by side, but unproven",
    "ambiguous": "These recordings are together at the best of several places",
    "insufficient": "These recordings are together at the best place, on weak evidence",
    "separate": "These recordings are side by side, but not all of them are aligned",
}
_ADVICE = {
    "ambiguous": (
        "The work repeats itself, and both files show it from different moments on. One fact from outside settles it:",
        (
            "Name one event that is the same in both files: <code>--anchor</code>. Or say the distance of the "
            "clocks, if you know it: <code>--offset FILE=TIME</code>.",
            "Or record again and start both tools before the program starts: the first iterations are slower than "
            "the rest, and tell where the run begins.",
            "Or record with a clock that can be related: <code>traceconv how FORMAT</code> prints the command.",
            "If any place will do for now: <code>--on-ambiguous best</code> takes the highest peak, with a "
            "warning; <code>--on-ambiguous separate</code> only puts the files side by side, under names that say so.",
        ),
    ),
    "insufficient": (
        "Nothing that both files saw could be recognised with confidence.",
        (
            "Check that both files come from the same run of the program, and from the same stretch of time.",
            "If the tools call the same work by different names, say so: <code>--map CLASS=PATTERN,…</code>.",
            "Record with times if one file has none: <code>traceconv how FORMAT</code> prints the command.",
            "If you know the distance of the clocks: <code>--offset FILE=TIME</code>.",
        ),
    ),
    "inconsistent": (
        "At least one statement about the clocks must be wrong. None was preferred.",
        (
            "Check that the files come from one run, and that nobody set the clock of the machine meanwhile.",
            "Check what you said yourself: <code>--offset</code>, <code>--anchor</code>, <code>--drift</code>, a "
            "time zone.",
            "Leave one file out and merge the others, to see which one does not fit.",
        ),
    ),
}


def page(report: Json) -> str:
    """The page for a report as `document` or `refusal_document` makes it."""
    parts = [_opening(report)]
    if report["refusal"]:
        parts.append(_refusal(report))
    parts += [_files(report), _timeline(report["inputs"])]
    parts += [_pair(pair, used=pair["used"] and not report["refusal"]) for pair in report["pairs"]]
    parts += [_processes(report["processes"]), _causality(report["causality"]), _glossary()]
    footer = f"<footer>Written by traceconv {escape(report['traceconv'])}.</footer>"
    body = "\n".join(part for part in [*parts, footer] if part)
    title = "How these recordings were lined up"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


# -- words ----------------------------------------------------------------------------------------------------------


def _short(ns: float | None) -> str:
    """A time with three digits."""
    return "not known" if ns is None else format_short(ns).replace("-", "−")


def _signed(ns: int) -> str:
    """A shift, short, with its exact value behind it."""
    sign = "+" if ns > 0 else ""
    shown = format_time(ns) if abs(ns) >= 10**15 else _short(ns)
    return f'<span class="whole" title="{escape(format_time(ns))}">{sign}{escape(shown)}</span>'


def _pill(verdict: str) -> str:
    return f'<span class="pill {verdict}">{_SIGNS[verdict]} {verdict}</span>'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _figure(title: str, picture: str, caption: str) -> str:
    return f'<figure><h3>{title}</h3><div class="wide">{picture}</div><figcaption>{caption}</figcaption></figure>'


# -- the parts of the page ------------------------------------------------------------------------------------------


def _opening(report: Json) -> str:
    verdict = report["verdict"]
    headline = "These recordings were not put together" if report["refusal"] else _HEADLINES.get(verdict, "Alignment")
    return (
        f"<h1>{headline} {_pill(verdict)}</h1>\n"
        '<p class="lead">Every tool that records a timeline reads a clock of its own. Two clocks rarely show the same '
        "time, and one may run a little faster than the other: that is called <em>drift</em>, and 1 ppm of it is a "
        "millionth of a second each second. Before two recordings can be drawn on one axis, somebody has to find out "
        "how their clocks relate. This page shows what was found, and how far to trust it.</p>"
    )


def _refusal(report: Json) -> str:
    refusal = report["refusal"]
    why, steps = _ADVICE.get(report["verdict"], _ADVICE["insufficient"])
    hint = f"<p><strong>Hint:</strong> {escape(refusal['hint'])}</p>" if refusal["hint"] else ""
    return (
        '<section class="callout"><h2>Why, and what to do</h2>\n'
        f"<p><strong>What was found:</strong> {escape(refusal['message'])}.</p>\n<p>{why}</p>\n"
        f"<ul>\n{''.join(f'<li>{step}</li>' for step in steps)}\n</ul>\n{hint}</section>"
    )


_COLUMNS = ("file", "verdict", "placed by", "moved by", "drift", "right to within", "events matched", "its clock")
_DRIFT = _COLUMNS.index("drift")


def _files(report: Json) -> str:
    rows = [_file_row(one, clock, report) for one in report["inputs"] for clock in one["clocks"]]
    rows += [_empty_row(one) for one in report["inputs"] if not one["clocks"]]
    header = list(_COLUMNS)
    if not any(row[_DRIFT] for row in rows):
        for row in [header, *rows]:
            del row[_DRIFT]
    axis = f"<p>The common axis counts: {escape(report['clock'])}.</p>" if report["clock"] else ""
    return f"<section><h2>File by file</h2>\n{_table(header, rows)}\n{axis}</section>"


def _name(one: Json) -> str:
    job = "" if one["rank"] is None else f"rank {one['rank']}"
    job += f" of {one['world_size']}" if job and one["world_size"] is not None else ""
    about = ", ".join(escape(text) for text in (one["format"], job, one["host"]) if text)
    return f"<strong>{escape(one['file'])}</strong><br><small>{about}</small>"


def _empty_row(one: Json) -> list[str]:
    """An input without events: nothing of it is placed."""
    return [_name(one), "—", "nothing to place: it holds no events", "—", "", "—", "—", "—"]


def _file_row(one: Json, clock: Json, report: Json) -> list[str]:
    name = _name(one)
    place, domain = clock["map"], escape(clock["description"])
    if place is None:
        return [name, _verdict_of(one["file"], clock["name"], report), "—", "—", "", "—", "—", domain]
    matches = "—"
    if place["matches"]:
        apart = place["residual_ns"]
        matches = f"{place['matches']:,}"
        matches += "" if apart is None else f"<br><small>{_short(apart)} apart (median)</small>"
    drift = format_drift(place["drift_ppm"]).replace("-", "−") if place["drift_ppm"] else ""
    verdict = f"{_pill(place['verdict'])}<br><small>{_MEANINGS[place['verdict']]}</small>"
    method = escape(place["method"])
    for bend in place["bends"]:
        drift_there = format_drift(bend["drift_ppm"]).replace("-", "−")
        moved = f"moved by {_signed(bend['offset_ns'])}, {drift_there}"
        method += f"<br><small>from {format_time(bend['at_ns'])} on: {moved}</small>"
    if place["note"]:
        method += f"<br><small>{escape(place['note'])}</small>"
    for warning in place["warnings"]:
        method += f"<br><strong>But {escape(warning)}.</strong>"
    return [name, verdict, method, _signed(place["offset_ns"]), drift, _within(place), matches, domain]


def _verdict_of(file: str, clock: str, report: Json) -> str:
    """What was found about a clock that was not placed."""
    for pair in report["pairs"]:
        if (file, clock) in ((pair[side]["file"], pair[side]["clock"]) for side in "xy"):
            verdict = pair["verdict"] if _is_refused(pair) else report["verdict"]
            return f"{_pill(verdict)}<br><small>{_MEANINGS[verdict]}</small>"
    return "not placed"


def _within(place: Json) -> str:
    """The greater of the bounds at both ends: in between it is less."""
    ends = [place[part]["bound_ns"] for part in ("begin", "end")]
    if None in ends:
        return f"not known{' (clocks of two hosts)' if place['two_hosts'] else ''}"
    begin, end = map(_short, ends)
    detail = f"<br><small>±{begin} at its begin, ±{end} at its end</small>" if begin != end else ""
    return f"±{_short(max(ends))}{detail}"


def _timeline(inputs: Sequence[Json]) -> str:
    """When each recording ran, once they are on one axis."""
    placed = [(one, clock["map"]) for one in inputs for clock in one["clocks"] if clock["map"]]
    if len(placed) < 2:
        return ""
    zero = min(place["begin"]["trace_time_ns"] for _, place in placed)
    rows = [
        (one["file"], place["begin"]["trace_time_ns"] - zero, place["end"]["trace_time_ns"] - zero)
        for one, place in placed
    ]
    axis = time_axis("time since the first event", 0.0, max(end for _, _, end in rows))
    caption = (
        "Each bar is a recording, from its first event to its last one, on the common axis. Recordings of one run "
        "overlap; if they do not, they may be of different runs."
    )
    return (
        f"<section>{_figure('When each recording ran', bars(rows, axis, 'When each recording ran'), caption)}</section>"
    )


def _pair(pair: Json, *, used: bool) -> str:
    x, y = escape(pair["x"]["file"]), escape(pair["y"]["file"])
    words = _METHODS.get(pair["method"], _Words())
    pictures = [_residuals(pair, words), _landscape(pair, words), _region(pair, words, used)]
    compared = escape(Method(pair["method"]).compared)
    found = (
        f"<p>{_pill(pair['verdict'])} {escape(pair['reason'])}. Compared: {compared}.</p>"
        f"<p>{_MEANINGS[pair['verdict']]}{_of_what_use(pair, used, any(pictures))}</p>"
    )
    return f"<section><h2>{x} and {y}</h2>\n{found}\n{''.join(pictures)}</section>"


def _of_what_use(pair: Json, used: bool, pictured: bool) -> str:
    """What became of the place that was found, if that is not plain from the verdict."""
    if used:
        return " It was used nevertheless, as <code>--on-ambiguous best</code> wants it." if _is_refused(pair) else ""
    return " The pictures show the best place that was found; it was not used." if pictured else ""


def _is_refused(pair: Json) -> bool:
    return Verdict(pair["verdict"]).refused


@dataclass(frozen=True, slots=True)
class _Words:
    """How the pictures of one kind of evidence are explained.

    Attributes:
        difference: what the height of a dot is.
        dots: what a dot is, and what looks good.
        score: what the height of the landscape is.
        slid: what was done to draw it.
        rules: what limits the answers.
    """

    difference: str = "how far apart the two files put it"
    dots: str = (
        "Each dot is an event that both files saw; its height says how far apart the two put it once they are lined "
        "up. <strong>Good</strong> is a flat, narrow band around zero. A slope of the whole band would be drift that "
        "is still there; a step, a clock that was set during the recording. Thin slanted stripes are normal: they come "
        "from times that are rounded to whole microseconds."
    )
    score: str = "how many events begin together"
    slid: str = (
        "One recording was slid along the other; the higher the curve, the more events of a kind begin together at "
        "that shift."
    )
    rules: str = (
        "Each matched event rules some answers out, since work cannot begin before the call that asked for it, nor go "
        "on after it."
    )


_METHODS = {
    "sequence of durations": _Words(
        difference="how much longer or shorter it is than expected",
        dots=(
            "One file has no times, only durations in order. Each dot is an event that was recognised by its duration; "
            "its height says how much the durations in both files differ from what is usual between the two. "
            "<strong>Good</strong> is a narrow band around zero."
        ),
        score="how well the durations agree",
        slid=(
            "The list of durations was laid along the other recording, from every place on; the higher the curve, the "
            "better the durations agree if the list ends there."
        ),
    ),
    "activity": _Words(
        score="how well busy and idle times agree",
        slid=(
            "One recording tells when the program was busy, the other one when work was going on. One was slid along "
            "the other; the higher the curve, the better the two agree at that shift."
        ),
        rules="Parts of the recording were compared by themselves; the area is where nearly all of them lead to.",
    ),
    "sampling interrupts": _Words(
        score="how much samples keep away from the begins and ends of slices",
        slid=(
            "A sample interrupts its thread, which cannot note the begin or the end of a slice meanwhile. The samples "
            "were slid along the slices; the higher the curve, the fewer of them lie at a begin or an end, compared "
            "with what chance would put there."
        ),
        rules="Samples and slices must not touch: the area is all lines that pass between them.",
    ),
}


def _residuals(pair: Json, words: _Words) -> str:
    found = pair["residuals_over_time"]
    if not found:
        return ""
    numbers = pair["residuals"]
    values = found["residual_ns"]
    reach = max(1.3 * min(max(abs(value) for value in values), 2 * numbers["p99_ns"]), 10.0)
    inside = [point for point in zip(found["time_ns"], values, strict=True) if abs(point[1]) <= reach]
    times = padded([time for time, _ in inside], 0.02)
    plane = Plane(
        time_axis(f"when it happened, on the clock of {pair['x']['file']} from its first event", *times),
        time_axis(words.difference, -reach, reach),
    )
    marks = [plane.across(0, "zero"), plane.dots(inside, "dots" if len(inside) > _MANY else "dots few")]
    outside = len(values) - len(inside)
    caption = (
        f"{words.dots} Half of the {numbers['n']:,} events are within {_short(numbers['median_ns'])}, 95 of 100 within "
        f"{_short(numbers['p95_ns'])}."
    )
    caption += f" {outside} dots lie outside of the picture." if outside else ""
    title = "The same event in both files"
    return _figure(title, plane.chart(marks, title), caption)


def _landscape(pair: Json, words: _Words) -> str:
    found = pair["landscape"]
    if not found:
        return ""
    rivals = [rival["offset_ns"] for rival in pair["rivals"]]
    title = "Where the two recordings fit"
    pictures = _peaks(found["all"], rivals, f"{words.score}: all shifts that were tried", labelled=not found["near"])
    if found["near"]:
        pictures += _peaks(found["near"], rivals, f"{words.score}: around the best place", labelled=True)
    return _figure(title, pictures, _about_peaks(pair, words))


def _about_peaks(pair: Json, words: _Words) -> str:
    caption = (
        f"{words.slid} <strong>Good</strong> is one peak above all others. A comb of equal peaks means that the work "
        "repeats itself, so that a rough look cannot tell one repetition from the next. "
    )
    if not pair["rivals"]:
        return caption + "No other place came close to the best one."
    others = ", ".join(_signed(rival["offset_ns"]) for rival in pair["rivals"][:3])
    return (
        f"{caption}The best place (dot) and its rivals (rings) were then compared closely. "
        f"The strongest rivals are {others} away."
    )


def _peaks(curve: Json, rivals: Sequence[int], about: str, *, labelled: bool) -> str:
    points = list(zip(curve["offset_ns"], curve["score"], strict=True))
    low, high = curve["offset_ns"][0], curve["offset_ns"][-1]
    least, most = min(curve["score"]), max(curve["score"])
    span = (most - least) or 1.0
    plane = Plane(
        time_axis("shift from the best place", low, high, 8),
        Axis(about, least, most + 0.28 * span, ticks=4),
        240,
    )
    marks = [plane.area(points, "area"), plane.line(points, "curve")]
    seen = [(rival, _height(points, rival)) for rival in rivals if low <= rival <= high]
    marks += [plane.ring(x, y, "rival") for x, y in seen]
    if low <= 0 <= high:
        best = (0.0, _height(points, 0))
        marks += [plane.upright(0.0, "guide"), plane.ring(*best, "best", 6)]
        if labelled:
            marks.append(plane.words(0.0, plane.y.high, "best place", "mark", up=-13))
            marks += _labels(plane, seen, best)
    return plane.chart(marks, about)


def _labels(plane: Plane, rivals: Sequence[tuple[float, float]], best: tuple[float, float]) -> list[str]:
    """Distances over the rings of the strongest rivals, as far as there is room."""
    taken = [plane.at(*best)[0]]
    found = []
    for x, y in rivals:
        across = plane.at(x, y)[0]
        if all(abs(across - other) > _ROOM for other in taken):
            taken.append(across)
            found.append(plane.words(x, y, f"{'+' if x > 0 else ''}{_short(x)}", "mark quiet"))
    return found


def _height(points: Sequence[tuple[float, float]], x: float) -> float:
    """The height of the curve at the highest of the points around x."""
    nearest = min(range(len(points)), key=lambda row: abs(points[row][0] - x))
    return max(score for _, score in points[max(nearest - 1, 0) : nearest + 2])


def _region(pair: Json, words: _Words, used: bool) -> str:
    corners = pair["region"]
    if not corners:
        return ""
    points = [(corner["offset_ns"], corner["drift_ppm"]) for corner in corners]
    across = padded([x for x, _ in [*points, (0.0, 0.0)]], 0.15)
    up = padded([y for _, y in [*points, (0.0, pair["drift_ppm"])]], 0.15)
    name = "the answer" if used else "the best place"
    plane = Plane(
        time_axis(f"how far the clocks are apart, counted from {name}", *across),
        Axis(f"how much faster the clock of {pair['y']['file']} runs, ppm", *up, ticks=5),
    )
    answer = (0.0, pair["drift_ppm"])
    marks = [
        plane.line(points, "region", closed=True),
        plane.ring(*answer, "best", 6),
        plane.words(*answer, name, "mark"),
    ]
    title = "Which answers are possible at all"
    return _figure(title, plane.chart(marks, title), _about_region(pair, words))


def _about_region(pair: Json, words: _Words) -> str:
    caption = (
        "Every point of this picture is an answer: left and right, how far apart the clocks are in the middle of the "
        f"recording; up and down, how much faster one of them runs. {words.rules} The shaded area is what is left. "
        "<strong>Good</strong> is a small area: all answers in it are nearly the same."
    )
    if pair["bounds"]:
        ends = [max(-bound["low_ns"], bound["high_ns"]) for bound in pair["bounds"]]
        caption += f" It leaves ±{_short(ends[0])} at the first event and ±{_short(ends[1])} at the last one."
    if pair["dropped"]:
        caption += f" {pair['dropped']} bounds that stood out were left out: some matches are wrong."
    return caption


def _processes(found: Sequence[Json]) -> str:
    if not found:
        return ""
    rows = "\n".join(f"<li>{escape(one['words'])}</li>" for one in found)
    return (
        "<section><h2>Processes</h2>\n<p>A process is known by its machine and pid, a thread by its machine and tid, "
        f"whatever file names them.</p>\n<ul>\n{rows}\n</ul></section>"
    )


def _causality(checks: Sequence[Json]) -> str:
    if not checks:
        return ""
    rows = [
        [
            f"{escape(check['rule'])}",
            escape(" and ".join(check["files"])),
            f"{check['checked']:,}",
            _before(check),
            _breaches(check["after"]),
            f"<small>{escape(check['after']['place'])}</small>",
        ]
        for check in checks
    ]
    header = ["what must not happen", "where", "checked", "before", "now", "the worst one"]
    return (
        "<section><h2>Cause and effect</h2>\n<p>Whatever the clocks say, an effect cannot come before its cause. This "
        "needs no knowledge of clocks, so it is a check from outside. A few cases among thousands are events that were "
        "matched wrongly, or that a tool wrote down carelessly; many mean that something is wrong. Within one file "
        "they are a fault of that recording.</p>\n"
        f"{_table(header, rows)}</section>"
    )


def _before(check: Json) -> str:
    if check["before"] is None:
        return "—" if len(check["files"]) == 1 else "not known"
    return _breaches(check["before"])


def _breaches(found: Json) -> str:
    count = found["violations"]
    return f"{count:,}, by up to {_short(found['worst_ns'])}" if count else "none"


def _glossary() -> str:
    rows = "\n".join(f"<dt>{_pill(verdict)}</dt><dd>{meaning}</dd>" for verdict, meaning in _MEANINGS.items())
    return f"<section><h2>What the verdicts mean</h2>\n<dl>\n{rows}\n</dl></section>"


_STYLE = """
:root { --page: #f6f7f9; --card: #ffffff; --ink: #1c2024; --quiet: #5b6470; --line: #d9dee5; --grid: #e9edf2;
  --blue: #2458d3; --fill: #2458d322; --good: #16703c; --good-back: #dcf3e5; --care: #8a5300; --care-back: #fdeccb;
  --bad: #b3261e; --bad-back: #fbe0de; --plain: #3e4a59; --plain-back: #e6eaf0; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171b; --card: #1c2127; --ink: #e6e9ed; --quiet: #a1abb8; --line: #353c46; --grid: #2a3038;
    --blue: #7ea6ff; --fill: #7ea6ff2b; --good: #7fdca4; --good-back: #173a26; --care: #ffcb75; --care-back: #43310f;
    --bad: #ff9d95; --bad-back: #4a1d1a; --plain: #c4cdd8; --plain-back: #303843; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 32px 20px 48px; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 12px; }
h1 .pill { font-size: 1rem; vertical-align: 4px; }
h2 { font-size: 1.25rem; margin: 0 0 12px; }
h3 { font-size: 1.02rem; margin: 0 0 8px; }
.lead { color: var(--quiet); max-width: 46rem; margin: 0 0 24px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 20px 24px;
  margin: 0 0 20px; overflow-wrap: anywhere; }
section p { max-width: 50rem; margin: 0 0 12px; }
.callout { border-left: 5px solid var(--bad); }
li { margin: 4px 0; }
code { background: var(--plain-back); border-radius: 4px; padding: 1px 5px; font-size: .9em;
  white-space: nowrap; }
small { color: var(--quiet); }
.wide { overflow-x: auto; margin: 0 0 12px; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th { text-align: left; color: var(--quiet); font-weight: 600; }
th, td { padding: 8px 14px 8px 0; border-bottom: 1px solid var(--line); vertical-align: top; min-width: 5.5rem;
  overflow-wrap: break-word; }
td:first-child { min-width: 9.5rem; overflow-wrap: anywhere; }
td:nth-child(2) { min-width: 10rem; }
td:last-child { overflow-wrap: anywhere; min-width: 8rem; }
.whole { white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
.pill { display: inline-block; border-radius: 999px; padding: 1px 10px; font-weight: 600; font-size: .88rem;
  white-space: nowrap; }
.ok { color: var(--good); background: var(--good-back); }
.assumed { color: var(--plain); background: var(--plain-back); }
.unverified { color: var(--care); background: var(--care-back); }
.ambiguous, .insufficient, .inconsistent, .separate { color: var(--bad); background: var(--bad-back); }
figure { margin: 24px 0 0; }
section > figure:first-child { margin-top: 0; }
figcaption { color: var(--quiet); font-size: .92rem; max-width: 50rem; margin-top: 6px; }
figcaption strong { color: var(--ink); }
svg { display: block; width: 100%; height: auto; margin: 4px 0 10px; min-width: 640px; }
svg text { font-size: 12px; fill: var(--quiet); text-anchor: middle; }
svg .start { text-anchor: start; } svg .end { text-anchor: end; }
svg .label { fill: var(--ink); font-size: 13px; }
svg .mark { fill: var(--ink); font-weight: 600; paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
svg .quiet { fill: var(--quiet); font-weight: 400; }
.grid { stroke: var(--grid); fill: none; } .frame { stroke: var(--line); fill: none; }
.zero { stroke: var(--quiet); fill: none; }
.dots { stroke: var(--blue); stroke-width: 4; stroke-linecap: round; fill: none; opacity: .4; }
.few { opacity: .85; } .guide { stroke: var(--blue); stroke-dasharray: 3 4; fill: none; opacity: .6; }
.curve { stroke: var(--blue); stroke-width: 1.2; fill: none; stroke-linejoin: round; } .area { fill: var(--fill); }
.region { fill: var(--fill); stroke: var(--blue); stroke-width: 1.5; stroke-linejoin: round; }
.best { fill: var(--blue); stroke: var(--card); stroke-width: 2; }
.rival { fill: none; stroke: var(--care); stroke-width: 2; }
.bar { fill: var(--blue); opacity: .8; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 8px 16px; margin: 0; }
dd { margin: 0; }
footer { color: var(--quiet); font-size: .85rem; }
"""
