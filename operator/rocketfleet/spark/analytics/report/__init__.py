"""The report: one HTML file with everything in it, no script, no font and no picture from elsewhere. Pure.

Charts are SVG that is written here, coloured by the page's style sheet: so they follow a reader's dark mode. Read
`page.py` and `style.py`; then `svg.py` (what every chart is drawn with), `time_charts.py`, `bars.py`, `heat_map.py`.
"""
