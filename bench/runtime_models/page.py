"""What was measured as a page of Markdown and as a plot."""

import html

from attn_opt.effect import CONTROL, ORIGINAL

_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d")
_LEFT, _BAR, _UNIT = 290, 9, 180  # pixels: names, height of a bar, width of a ratio of 1


def columns_of(results):
    """Names of the columns of ratios, in the order they first occur."""
    rows = (row for result in results for row in result.effect.rows)
    return list(dict.fromkeys(row.name for row in rows if row.name != ORIGINAL))


def _measured(result, name):
    """The row called NAME, or the one that was measured in its place."""
    rows = {row.name: row for row in result.effect.rows}
    row = rows.get(name)
    return rows[row.same_as] if row is not None and row.same_as else row


def _cell(result, name):
    row = _measured(result, name)
    if row is None:
        return "-"
    if row.failure:
        return "does not run"
    if row.cpu_ratio is None:
        return "nothing fused"
    ratio, control = row.cpu_ratio, _measured(result, CONTROL).cpu_ratio
    sure = name != CONTROL and (ratio.low > max(1.02, control.high) or ratio.high < min(0.98, control.low))
    return ("**{:.2f}**" if sure else "{:.2f}").format(ratio.median) + f" ({ratio.low:.2f} to {ratio.high:.2f})"


def _memory(result):
    peaks = [row.peak_bytes for row in result.effect.rows if row.name == ORIGINAL or row.fused]
    return " / ".join(f"{peak / 1e6:.0f}" for peak in peaks if peak)


def _difference(result):
    found = [row.difference for row in result.effect.rows if row.difference and row.name != CONTROL and row.fused is not None]
    largest = max((one.relative for one in found), default=0)
    return (f"{largest:.0e}" if largest else "0") + " (!)" * any(one.beyond for one in found)


def markdown_table(results):
    names = columns_of(results)
    lines = [["model", "sizes", "original, CPU ms", *names, "fuses", "peak MB", "difference"]]
    lines.append(["---"] * len(lines[0]))
    for result in results:
        original = next(row for row in result.effect.rows if row.name == ORIGINAL)
        lines.append([result.name, result.sizes, f"{original.cpu_seconds * 1e3:.1f}", *(_cell(result, name) for name in names),
                      "-" if result.beside is None else str(result.beside), _memory(result), _difference(result)])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _text(x, y, text, anchor="start", size=11):
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="#444">{html.escape(text)}</text>'


def _bars(result, names, top):
    """Bars of one result below TOP, a thin line for where the median lies."""
    parts = [_text(_LEFT - 8, top + len(names) * _BAR / 2 + 4, f"{result.name}, {result.sizes}", "end")]
    for index, name in enumerate(names):
        row = _measured(result, name)
        if row is None or row.cpu_ratio is None:
            continue
        y, ratio, colour = top + index * _BAR, row.cpu_ratio, _COLOURS[index % len(_COLOURS)]
        parts.append(f'<rect x="{_LEFT}" y="{y}" width="{ratio.median * _UNIT:.1f}" height="{_BAR - 1}" fill="{colour}"/>')
        parts.append(f'<path d="M{_LEFT + ratio.low * _UNIT:.1f} {y + 4}H{_LEFT + ratio.high * _UNIT:.1f}" stroke="#222"/>')
    return parts


def plot(results):
    """An SVG with a bar for each ratio; the line at 1 is the original."""
    names = [name for name in columns_of(results) if name != CONTROL]
    step = len(names) * _BAR + 8
    bottom = 40 + len(results) * step
    highest = max(row.cpu_ratio.high for result in results for row in result.effect.rows if row.cpu_ratio)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + max(highest, 2) * _UNIT + 30:.0f}" height="{bottom + 20}" '
             'font-family="sans-serif"><rect width="100%" height="100%" fill="#fff"/>']
    for index, name in enumerate(names):
        x = _LEFT + index * 100
        parts += [f'<rect x="{x}" y="8" width="10" height="10" fill="{_COLOURS[index % len(_COLOURS)]}"/>', _text(x + 15, 17, name)]
    for index, result in enumerate(results):
        parts += _bars(result, names, 34 + index * step)
    for ratio in range(int(highest) + 1):
        x = _LEFT + ratio * _UNIT
        parts += [f'<path d="M{x} 28V{bottom}" stroke="{"#c00" if ratio == 1 else "#bbb"}"/>', _text(x, bottom + 14, str(ratio), "middle")]
    return "\n".join([*parts, "</svg>", ""])
