"""The page's style sheet: one column, quiet colours, the same in the dark."""

from __future__ import annotations

from typing import Final

CSS: Final = """
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --card: #ffffff; --ink: #1d2530; --soft: #667085; --hair: #e4e7ec; --faint: #f0f2f5;
  --lag: #e07a1f; --in: #3b7dd8; --out: #18a172; --bad: #d6413b; --warn: #c98a00; --hint: #667085;
  --heat: #2f6fd0; --advice: #7a5af0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #11151b; --card: #191f28; --ink: #e6eaf0; --soft: #97a3b4; --hair: #2b3441; --faint: #212936;
    --lag: #f3a04e; --in: #6ba6f5; --out: #3ccb98; --bad: #ff7a72; --warn: #e7b43c; --hint: #97a3b4;
    --heat: #6ba6f5; --advice: #a48bff;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI",
  Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 36px 20px 60px; }
h1 { font-size: 30px; line-height: 1.15; margin: 0 0 6px; letter-spacing: -.02em; }
h2 { font-size: 19px; margin: 40px 0 12px; letter-spacing: -.01em; }
h3 { font-size: 13px; font-weight: 600; color: var(--soft); margin: 0 0 6px; }
p { margin: 0 0 8px; }
.soft, .foot { color: var(--soft); }
.foot { font-size: 13px; margin-top: 36px; }
.verdict { font-size: 19px; margin: 18px 0 0; }
.card { background: var(--card); border: 1px solid var(--hair); border-radius: 12px; padding: 20px; margin: 0 0 18px;
  box-shadow: 0 1px 2px rgb(16 24 40 / 4%); }
.card > header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 6px 12px; margin: 0 0 14px; }
.card > header h2 { margin: 0; font-size: 21px; overflow-wrap: anywhere; }
.findings { list-style: none; margin: 18px 0 0; padding: 0; display: grid; gap: 8px; }
.findings li { background: var(--card); border: 1px solid var(--hair); border-left: 4px solid var(--hint);
  border-radius: 8px; padding: 9px 14px; overflow-wrap: anywhere; }
.findings li.bad { border-left-color: var(--bad); } .findings li.warning { border-left-color: var(--warn); }
.badge { display: inline-block; font-size: 12px; font-weight: 600; border-radius: 20px; padding: 1px 9px;
  border: 1px solid currentColor; white-space: nowrap; }
.badge.bad { color: var(--bad); } .badge.warning { color: var(--warn); } .badge.hint { color: var(--hint); }
.badge.good { color: var(--out); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(116px, 1fr)); gap: 8px; margin: 0 0 18px; }
.tiles div { background: var(--faint); border-radius: 8px; padding: 8px 12px; }
.tiles b { display: block; font-size: 20px; font-weight: 650; letter-spacing: -.01em; line-height: 1.3;
  white-space: nowrap; }
.tiles span { font-size: 12px; color: var(--soft); }
.charts { display: grid; grid-template-columns: 4fr 3fr 3fr; gap: 22px; margin-top: 16px; }
@media (max-width: 820px) { .charts { grid-template-columns: 1fr; } }
.chart { margin: 0 0 6px; min-width: 0; }
.key { font-weight: 400; } .key i { display: inline-block; width: 14px; height: 3px; border-radius: 2px;
  vertical-align: middle; margin: 0 4px 0 10px; }
.advice { background: var(--faint); border-radius: 8px; padding: 10px 14px; margin: 16px 0 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 600; font-size: 12px; white-space: nowrap; }
th, td { padding: 7px 10px 7px 0; border-bottom: 1px solid var(--hair); vertical-align: middle; }
tr:last-child td { border-bottom: 0; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td a { color: inherit; font-weight: 600; text-decoration-color: var(--hair); }
td svg { width: 150px; }
table.hours td, table.hours th { padding: 2px; border: 0; text-align: center; }
table.hours td:first-child, table.hours th:first-child { text-align: left; padding-right: 12px; white-space: nowrap; }
table.hours td.h { position: relative; min-width: 24px; height: 28px; border-radius: 4px; background: var(--faint);
  font-variant-numeric: tabular-nums; font-size: 13px; }
table.hours td.h i { position: absolute; inset: 1px; border-radius: 4px; background: var(--advice); }
table.hours td.h span { position: relative; }
svg { display: block; width: 100%; height: auto; }
svg text { font-size: 11.5px; fill: var(--soft); }
.grid { stroke: var(--hair); } .faint { stroke-opacity: .55; } .axis { stroke: var(--soft); stroke-opacity: .6; }
.lag-area { fill: var(--lag); fill-opacity: .22; } .lag-line { stroke: var(--lag); stroke-width: 1.8; fill: none; }
.thin { stroke-width: 1.2; }
.in-line, .out-line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.in-area { fill: var(--in); fill-opacity: .16; } .in-line { stroke: var(--in); stroke-width: 1.2; }
.out-line { stroke: var(--out); }
.hover { fill: transparent; } .hover:hover { fill: var(--soft); fill-opacity: .14; }
.cell { fill: var(--heat); rx: 3px; } .cell.none { fill: var(--faint); }
.bar { rx: 1.5px; } .bar.lag { fill: var(--lag); } .bar.in { fill: var(--in); } .bar.stuck { fill: var(--bad); }
.bar.advice { fill: var(--advice); } .bar.lacking { fill: var(--bad); fill-opacity: .35; }
.even { stroke: var(--soft); stroke-dasharray: 4 3; } .had { stroke: var(--ink); stroke-width: 1.6; fill: none; }
@media print { body { background: #fff; } .card { break-inside: avoid; box-shadow: none; } }
"""
