"""The page, from its verdict down to each group's charts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from rocketfleet.base.counting import counted
from rocketfleet.spark.analytics.findings import Weight, findings
from rocketfleet.spark.analytics.report.bars import member_bars, queue_bars
from rocketfleet.spark.analytics.report.heat_map import days_by_hour, groups_by_hour
from rocketfleet.spark.analytics.report.style import CSS
from rocketfleet.spark.analytics.report.svg import safe
from rocketfleet.spark.analytics.report.time_charts import lag_chart, rate_chart, sparkline
from rocketfleet.spark.analytics.wording import NONE, moment, number, span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocketfleet.spark.analytics.figures import Analysis, ClusterGroupKey, GroupDetail, GroupFigures
    from rocketfleet.spark.analytics.findings import Finding
    from rocketfleet.spark.analytics.recommending import Recommendation

MOST_FINDINGS: Final = 12
KEEPS_UP: Final = 60.0
"""Seconds of traffic: what waits for less is on its way, and no lag that is to be worked off."""
_KINDS: Final = {Weight.BAD: "bad", Weight.WARNING: "warning", Weight.HINT: "hint"}


def page(analysis: Analysis, recommendations: Sequence[Recommendation], written: float) -> str:
    """The whole file. `written` is when, in seconds since 1970."""
    found = findings(analysis, recommendations)
    advice = {one.key: one for one in recommendations}
    by_group: dict[ClusterGroupKey, list[Finding]] = {}
    for one in found:
        by_group.setdefault(one.key, []).append(one)
    several = len({group.key.cluster for group in analysis.groups}) > 1
    parts = [
        _head(analysis, found),
        _overview(analysis, by_group, advice, several=several),
        _traffic(analysis),
        _members(analysis, advice),
        _stuck(analysis),
        "<h2>Each group</h2>",
        *(
            _group(analysis, group, analysis.details[group.key], by_group.get(group.key, []), advice.get(group.key))
            for group in _with_details(analysis)
        ),
        _foot(analysis, written),
    ]
    title = f"Lag from {moment(analysis.since)} to {moment(analysis.until)}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe(title)}</title><style>{CSS}</style></head>\n<body><main>\n{''.join(parts)}\n</main></body></html>\n"
    )


def _with_details(analysis: Analysis) -> list[GroupFigures]:
    """Groups with charts, in the order in which they were chosen."""
    by_key = {group.key: group for group in analysis.groups}
    return [by_key[key] for key in analysis.details]


def _anchor(analysis: Analysis, key: ClusterGroupKey) -> str:
    return f"group-{next(place for place, group in enumerate(analysis.groups) if group.key == key)}"


def keeps_up(group: GroupFigures) -> bool:
    """Whether what waits is no more than what is always on its way."""
    return group.lag is not None and group.lag <= KEEPS_UP * max(1.0, group.produce_rate or 0.0)


def _drain(group: GroupFigures) -> str:
    if keeps_up(group):
        return "keeps up"
    if group.drain_seconds is not None and math.isinf(group.drain_seconds):
        return "never"
    return span(group.drain_seconds)


# -- what is above the groups -----------------------------------------------------------------------------------------


def _head(analysis: Analysis, found: Sequence[Finding]) -> str:
    bad = len({one.key for one in found if one.weight >= Weight.WARNING})
    verdict = f"{counted(bad, 'group needs', 'groups need')} a look" if bad else "All groups are well"
    queues = sum(group.queues for group in analysis.groups)
    period = f"{moment(analysis.since)} to {moment(analysis.until)} UTC"
    groups, many = counted(len(analysis.groups), "group", grouped=True), counted(queues, "queue", grouped=True)
    size = f"{groups}, {many}, {number(analysis.samples)} samples"
    items = "".join(
        f'<li class="{_KINDS[one.weight]}"><b>{safe(one.key.group)}</b> · {safe(one.sentence)}</li>'
        for one in found[:MOST_FINDINGS]
    )
    rest = f"<p class='soft'>And {len(found) - MOST_FINDINGS} more below.</p>" if len(found) > MOST_FINDINGS else ""
    return (
        f"<h1>Lag report</h1><p class='soft'>{safe(period)} · {safe(size)} · from {safe(analysis.source)}</p>"
        f"<p class='verdict'>{safe(verdict)}.</p><ul class='findings'>{items}</ul>{rest}"
    )


def _overview(
    analysis: Analysis,
    found: Mapping[ClusterGroupKey, Sequence[Finding]],
    advice: Mapping[ClusterGroupKey, Recommendation],
    *,
    several: bool,
) -> str:
    rows = []
    for group in analysis.groups:
        detail = analysis.details.get(group.key)
        name = safe(group.key.group)
        if detail is not None:
            name = f'<a href="#{_anchor(analysis, group.key)}">{name}</a>'
        if several:
            name += f"<br><span class='soft'>{safe(group.key.cluster)}</span>"
        shape = sparkline(detail.points, analysis.since, analysis.until) if detail is not None else ""
        figures = (
            number(group.lag), span(group.seconds), span(group.seconds_p95), number(group.produce_rate),
            number(group.consume_rate), _drain(group), number(group.members), _range(advice.get(group.key)),
        )  # fmt: skip
        cells = "".join(f'<td class="n">{safe(figure)}</td>' for figure in figures)
        rows.append(f"<tr><td>{name} {_badges(found.get(group.key, ()))}</td><td>{shape}</td>{cells}</tr>")
    heads = ("waiting", "oldest", "p95 wait", "in/s", "out/s", "drains in", "members", "advised")
    head = "".join(f'<th class="n">{word}</th>' for word in heads)
    return (
        "<h2>Groups</h2><div class='card scroll'><table><thead><tr><th>group</th><th>lag over time</th>"
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _badges(found: Sequence[Finding]) -> str:
    words = {one.word: one.weight for one in found}
    return " ".join(f'<span class="badge {_KINDS[weight]}">{safe(word)}</span>' for word, weight in words.items())


def _range(advice: Recommendation | None) -> str:
    known = [many for many in advice.members if many is not None] if advice is not None else []
    if not known:
        return NONE
    return str(max(known)) if min(known) == max(known) else f"{min(known)} to {max(known)}"


def _traffic(analysis: Analysis) -> str:
    rows = [
        (group.key.group, [None if hour is None else hour.produce_rate for hour in group.hours])
        for group in _with_details(analysis)
    ]
    return (
        "<h2>When messages come</h2><div class='card'><p class='soft'>By the hour of the day, in UTC; each group by "
        f"its own busiest hour.</p>{groups_by_hour(rows)}</div>"
    )


def _members(analysis: Analysis, advice: Mapping[ClusterGroupKey, Recommendation]) -> str:
    rows = []
    for group in analysis.groups:
        one = advice.get(group.key)
        if one is None or not any(many is not None for many in one.members):
            continue
        most = max(many for many in one.members if many is not None)
        cells = "".join(_hour_cell(many, most) for many in one.members)
        more = f"+{one.queues_to_add}" if one.queues_to_add else ""
        rows.append(
            f"<tr><td>{safe(group.key.group)}</td>{cells}<td class='n'>{one.queues}</td>"
            f"<td class='n'><b>{more}</b></td></tr>"
        )
    if not rows:
        return ""
    hours = "".join(f"<th>{hour:02d}</th>" for hour in range(24))
    return (
        "<h2>Members by the hour</h2><div class='card scroll'><p class='soft'>What each hour needs at its peak, in "
        "UTC: the floor that autoscaling can be given.</p><table class='hours'><thead><tr><th>group</th>"
        f"{hours}<th>queues</th><th>to add</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _hour_cell(many: int | None, most: int) -> str:
    if many is None:
        return "<td class='h'></td>"
    shade = 0.1 + 0.45 * many / most if most else 0.0
    return f"<td class='h'><i style='opacity:{shade:.2f}'></i><span>{many}</span></td>"


def _stuck(analysis: Analysis) -> str:
    if not analysis.stuck:
        return ""
    rows = []
    for queue in analysis.stuck:
        badge = "<span class='badge bad'>still</span>" if queue.still else "<span class='badge hint'>moves again</span>"
        cells = "".join(
            f"<td>{safe(value)}</td>"
            for value in (queue.key.group, queue.name, queue.owner or "nobody", moment(queue.until))
        )
        lag, lasted = number(queue.lag), span(queue.until - queue.since)
        rows.append(f"<tr>{cells}<td class='n'>{lasted}</td><td class='n'>{lag}</td><td>{badge}</td></tr>")
    return (
        "<h2>Queues that stood still</h2><div class='card scroll'><p class='soft'>Messages waited all the time, and "
        "none was consumed.</p><table><thead><tr><th>group</th><th>queue</th><th>owner</th><th>until</th>"
        "<th class='n'>for</th><th class='n'>waiting</th><th></th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


# -- one group --------------------------------------------------------------------------------------------------------


def _group(
    analysis: Analysis,
    group: GroupFigures,
    detail: GroupDetail,
    found: Sequence[Finding],
    advice: Recommendation | None,
) -> str:
    frame = (analysis.since, analysis.until, analysis.step)
    stuck = {queue.name for queue in analysis.stuck if queue.key == group.key and queue.still}
    badges = _badges(found) or "<span class='badge good'>well</span>"
    tiles = (
        (number(group.lag), "wait now"),
        (span(group.seconds), "the oldest of them"),
        (_drain(group), "until drained"),
        (span(group.seconds_p95), "p95 wait"),
        (number(group.lag_p95), "p95 lag"),
        (f"{number(group.produce_rate)} / {number(group.consume_rate)}", "in / out per second"),
        (f"{group.members} / {group.queues}", "members / queues"),
    )
    shown = "".join(f"<div><b>{safe(value)}</b><span>{safe(label)}</span></div>" for value, label in tiles)
    sentences = "".join(f"<p>{safe(one.sentence)}</p>" for one in found)
    needs = ""
    if advice is not None:
        many = _range(advice)
        told = "<b>No advice</b>: "
        if many != NONE:
            told = f"<b>{safe(many)} member{'' if many == '1' else 's'}</b>{', by the hour' if ' ' in many else ''}: "
        needs = f"<p class='advice'>{told}{safe(advice.why)}.</p>"
    members = member_bars(group, advice) if advice is not None else ""
    charts = "".join(
        f"<div class='chart'><h3>{title} {key}</h3>{drawn}</div>"
        for title, key, drawn in (
            ("Daily pattern: in/s by hour", "", days_by_hour(detail.hourly)),
            ("Queues", _key(("lag", "lag"), ("in", "in/s")), queue_bars(detail.queues, stuck)),
            ("Members by hour", _key(("advice", "needed"), ("ink", "had")), members),
        )
    )
    rates = rate_chart(detail.points, *frame)
    return (
        f"<section class='card' id='{_anchor(analysis, group.key)}'><header><h2>{safe(group.key.group)}</h2>"
        f"<span class='soft'>{safe(group.key.cluster)}</span>{badges}</header>"
        f"<div class='tiles'>{shown}</div>{sentences}"
        f"<div class='chart'><h3>Messages waiting</h3>{lag_chart(detail.points, *frame)}</div>"
        f"<div class='chart'><h3>Messages per second {_key(('in', 'in'), ('out', 'out'))}</h3>{rates}</div>"
        f"<div class='charts'>{charts}</div>{needs}</section>"
    )


def _key(*words: tuple[str, str]) -> str:
    """What the colours of a chart mean: a colour of the style sheet, and a word for it."""
    marks = "".join(f"<i style='background:var(--{colour})'></i>{safe(word)}" for colour, word in words)
    return f"<span class='key'>{marks}</span>"


def _foot(analysis: Analysis, written: float) -> str:
    left_out = len(analysis.groups) - len(analysis.details)
    rest = f" Charts are shown for {len(analysis.details)} of {len(analysis.groups)} groups." if left_out else ""
    window, step = span(analysis.window), span(analysis.step)
    words = (
        f"Written {moment(written)} UTC by rocketfleet spark report from {analysis.source}. Windows of {window}; a "
        f"point of a chart is {step} and shows the most that waited in it. Now means the last hour of the period. All "
        f"times are UTC.{rest}"
    )
    return f"<p class='foot'>{safe(words)}</p>"
