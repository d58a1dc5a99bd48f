"""How a page looks: a style sheet in the figures' colours, for light, dark, narrow screens and paper."""

from __future__ import annotations

from glassbox.draw.svg import DARK, LIGHT, MONO, SANS, palette_css

STYLE = f"""
:root {{
  color-scheme: light dark; {palette_css(LIGHT)}
  --page: #fff; --accent: #a05f00; --accent-line: #e2a640; --tint: #fdf6e9;
}}
@media screen and (prefers-color-scheme: dark) {{
  :root {{ {palette_css(DARK)} --page: #12171d; --accent: #ffb938; --accent-line: #b98324; --tint: #241d10; }}
}}
* {{ box-sizing: border-box; }}
html {{ background: var(--page); -webkit-text-size-adjust: 100%; }}
body {{
  font: 16px/1.55 {SANS}; color: var(--gb-ink); max-width: 50rem; margin: 0 auto;
  padding: 2.5rem 1.25rem 4rem; overflow-wrap: break-word;
}}
h1 {{ font-size: 1.75rem; line-height: 1.25; margin: 0 0 .25rem; text-wrap: balance; }}
h2 {{
  font-size: 1.15rem; line-height: 1.35; margin: 0 0 .75rem;
  display: flex; gap: .6rem; align-items: baseline;
}}
h3, h4, h5, h6 {{ font-size: 1rem; margin: 1rem 0 .4rem; }}
p {{ margin: .6rem 0; }}
a {{ color: var(--accent); text-underline-offset: .15em; }}
code, pre {{ font-family: {MONO}; font-size: .875rem; }}
pre {{
  background: var(--gb-panel); border: 1px solid var(--gb-line); border-radius: 8px;
  padding: .75rem 1rem; margin: .6rem 0; line-height: 1.5; overflow: auto; max-height: 32rem;
}}
table {{ border-collapse: collapse; }}
th {{ font-weight: 600; font-size: .85rem; color: var(--gb-muted); text-align: left; }}
.number {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
.soft {{ color: var(--gb-muted); font-size: .9rem; }}
.good {{ color: var(--gb-good); }}
.bad {{ color: var(--gb-bad-line); }}
.part {{ color: var(--gb-lit); }}
.sign {{ font-weight: 700; display: inline-block; width: 1.1em; flex: none; text-align: center; }}
header p {{ margin: 0; }}
.late {{ border-left: 3px solid var(--gb-lit); padding-left: .75rem; }}
.scores {{
  display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .75rem;
  margin: 1.5rem 0 1rem;
}}
.worth {{
  background: var(--gb-panel); border: 1px solid var(--gb-line); border-radius: 10px; padding: .8rem 1rem;
}}
.won {{ font-size: 2rem; line-height: 1.2; font-weight: 600; font-variant-numeric: tabular-nums; }}
.bar {{ height: 4px; border-radius: 2px; background: var(--gb-line); margin: .4rem 0; overflow: hidden; }}
.bar div {{ height: 100%; background: var(--accent-line); }}
.bar, .bar div, aside {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
.contents {{ width: 100%; margin: 1rem 0; }}
.contents td, .contents th {{
  padding: .4rem .35rem; vertical-align: baseline; border-top: 1px solid var(--gb-out-line);
}}
.contents th {{ border-top: none; }}
.contents a {{ color: inherit; text-decoration-color: var(--gb-line); }}
.contents a:hover, .contents a:focus-visible {{ color: var(--accent); text-decoration-color: currentColor; }}
.contents td:first-child {{ width: 1.9rem; }}
.contents td:nth-child(2) {{ width: 100%; }}
section {{ border-top: 1px solid var(--gb-out-line); padding-top: 1.5rem; margin-top: 2rem; }}
section:target h2 {{ color: var(--accent); }}
h2 .points {{
  margin-left: auto; white-space: nowrap; font-weight: 400; font-variant-numeric: tabular-nums;
  color: var(--gb-muted);
}}
.glassbox-heading {{ display: none; }}
.glassbox-report > table {{ width: 100%; }}
details {{ margin: .6rem 0; }}
summary {{ cursor: pointer; color: var(--gb-muted); font-size: .9rem; }}
summary:hover, summary:focus-visible {{ color: var(--accent); }}
aside {{
  background: var(--tint); border-left: 3px solid var(--accent-line); border-radius: 0 10px 10px 0;
  padding: .7rem 1rem; margin: 1rem 0;
}}
aside > :last-child, .words > :last-child {{ margin-bottom: 0; }}
.who {{ font-size: .85rem; font-weight: 600; color: var(--accent); }}
.words {{ border-left: 3px solid var(--gb-line); padding-left: 1rem; margin: .75rem 0; }}
.words td, .words th, aside td, aside th {{ border: 1px solid var(--gb-line); padding: .25rem .6rem; }}
.keyword {{ color: var(--accent); }}
.string {{ color: var(--gb-good); }}
.remark {{ color: var(--gb-muted); }}
@media (max-width: 34rem) {{
  body {{ padding: 1.5rem 1rem 3rem; }}
  h1 {{ font-size: 1.4rem; }}
  .scores {{ grid-template-columns: 1fr 1fr; }}
  .worth:last-child {{ grid-column: 1 / -1; }}
  .won {{ font-size: 1.5rem; }}
  .unit {{ display: none; }}
  .glassbox-figure {{ max-width: none !important; }}
}}
@media print {{
  body {{ max-width: none; padding: 0; font-size: 11pt; }}
  pre {{ white-space: pre-wrap; overflow-wrap: anywhere; max-height: none; }}
  h2, summary {{ break-after: avoid; }}
  tr, aside, .worth {{ break-inside: avoid; }}
}}
"""
