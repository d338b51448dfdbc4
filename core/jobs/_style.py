"""The look of report.html: one style sheet, light and dark, phone and desk."""

CSS = """
:root { color-scheme: light dark; --bg: #f6f7f9; --card: #ffffff; --ink: #1a1f27; --soft: #5c6674; --line: #e1e5ea;
  --accent: #1f5fbf;
  --good: #1a7f4b; --bad: #b3261e; --warn: #96650a; --good-bg: #e3f4ea; --bad-bg: #fbe6e4; --warn-bg: #fbf0d9; }
@media (prefers-color-scheme: dark) { :root { --bg: #12151a; --card: #1b2027; --ink: #e6e9ee; --soft: #9aa5b4; --line: #2d343e;
  --accent: #8ab4f8;
  --good: #7ddba6; --bad: #f5a29b; --warn: #f0c674; --good-bg: #173526; --bad-bg: #3f1d1b; --warn-bg: #3a2e14; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, sans-serif; overflow-wrap: break-word; -webkit-text-size-adjust: 100%; }
main { max-width: 1080px; margin: 0 auto; padding: 28px 20px 60px; }
header { margin-bottom: 20px; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 1.1rem; margin: 0 0 12px; }
h2 small { font-weight: 400; color: var(--soft); font-size: 0.85rem; margin-left: 8px; }
p { margin: 0 0 10px; }
.lead { color: var(--soft); font-size: 1.05rem; margin: 0 0 10px; }
.facts { color: var(--soft); font-size: 0.9rem; display: flex; flex-wrap: wrap; gap: 4px 18px; align-items: center; }
.pill { border-radius: 999px; padding: 2px 12px; font-weight: 600; font-size: 0.85rem; white-space: nowrap; }
.completed { background: var(--good-bg); color: var(--good); } .failed, .died { background: var(--bad-bg); color: var(--bad); }
.interrupted, .running { background: var(--warn-bg); color: var(--warn); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 18px 20px; margin: 0 0 16px; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 16px 24px; margin: 0; }
.numbers div { min-width: 0; } .numbers dt { color: var(--soft); font-size: 0.82rem; }
.numbers dd { margin: 2px 0 0; font-size: 1.35rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.numbers dd.words { font-size: 1rem; font-weight: 400; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); gap: 18px; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(300px, 100%), 1fr)); gap: 12px; }
.wide { grid-column: 1 / -1; }
figure { margin: 0; min-width: 0; } figcaption { color: var(--soft); font-size: 0.88rem; margin-top: 6px; }
img { max-width: 100%; height: auto; display: block; } .pictures img { background: #fff; border-radius: 8px; padding: 8px;
  border: 1px solid var(--line); margin: 0 auto; }
.charts img { width: 100%; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 0.82rem; }
th, td { padding: 6px 14px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.88em; }
td.mono { overflow-wrap: anywhere; } td.name { white-space: nowrap; }
.scroll + .scroll, .scroll + p { margin-top: 14px; }
.soft { color: var(--soft); } .changed { color: var(--accent); font-weight: 600; }
a { color: var(--accent); } pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.88rem; }
summary { cursor: pointer; font-weight: 600; font-size: 1.1rem; } details[open] summary { margin-bottom: 12px; }
.columns { columns: 3 220px; column-gap: 28px; font-size: 0.88rem; margin: 0; padding: 0; list-style: none; }
.columns li { display: flex; justify-content: space-between; gap: 10px; break-inside: avoid; }
footer { color: var(--soft); font-size: 0.85rem; text-align: center; }
@media (max-width: 560px) { main { padding: 18px 12px 40px; }
  section { padding: 14px; border-radius: 10px; } h1 { font-size: 1.4rem; } }
@media print { body { background: #fff; } section { break-inside: avoid; } }
"""
