"""The pictures of a report, each as one inline SVG element.

Promises: no pyplot, so no figure registry and no window system; colours are the CSS variables of the
page, so a picture follows light and dark; text stays text in the page's own font, so class names of
any script show and no glyph is ever looked up; everything in a picture is HTML-escaped; equal
numbers give equal bytes.

How: matplotlib lays out short ASCII keys and colours of a private palette, and both are replaced
in the finished SVG. `svg.fonttype` and `svg.hashsalt` can only be set in matplotlib's settings; they
are set for the moment of drawing and put back.
"""

from __future__ import annotations

import html
import io
import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from textmill.evaluate.metrics import Bin

MAX_DRAWN_CLASSES = 20
_INK, _MUTED, _LINE, _FIRST, _SECOND, _WARN = "#01f001", "#01f002", "#01f003", "#01f004", "#01f005", "#01f006"
_VARIABLES = {
    _INK: "var(--ink)",
    _MUTED: "var(--muted)",
    _LINE: "var(--line)",
    _FIRST: "var(--first)",
    _SECOND: "var(--second)",
    _WARN: "var(--warn)",
}
_PIXELS_PER_INCH = 72  # one SVG unit is one point, shown as one CSS pixel
_FONT_SIZE = 13


class Picture:
    """A figure whose size is in CSS pixels and whose words are set in the page's font."""

    def __init__(self, name: str, width: float, height: float) -> None:
        self.name = name
        self.width, self.height = width, height
        self.figure = Figure(figsize=(width / _PIXELS_PER_INCH, height / _PIXELS_PER_INCH))
        self._words: list[str] = []

    def axes(self, left: float, top: float, right: float, bottom: float) -> Axes:
        """Return plain axes; the arguments are their margins in pixels."""
        box = (
            left / self.width,
            bottom / self.height,
            1 - (left + right) / self.width,
            1 - (top + bottom) / self.height,
        )
        axes = self.figure.add_axes(box)
        axes.set_facecolor("none")
        axes.grid(axis="y", color=_LINE, linewidth=1)
        axes.set_axisbelow(True)
        axes.tick_params(colors=_MUTED, labelsize=_FONT_SIZE, length=0, pad=6)
        for side, spine in axes.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(_LINE)
        return axes

    def word(self, english: str, chinese: str | None = None) -> str:
        """Return a key that stands for a text (in two languages, or one for both)."""
        if chinese is None:
            shown = html.escape(english)
        else:
            shown = f'<tspan lang="en">{html.escape(english)}</tspan><tspan lang="zh">{chinese}</tspan>'
        self._words.append(shown)
        return f"@{len(self._words) - 1}@"

    def svg(self, english: str) -> Markup:
        """Return the picture; `english` describes it to those who do not see it."""
        buffer = io.StringIO()
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": self.name}):
            self.figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        text = buffer.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
        text = re.sub(r'<g id="[^"]*">', "<g>", text)
        text = text.replace("xlink:href=", "href=")
        text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
        text = re.sub(r'(d="[^"]*")', lambda path: path[1].replace(" \n", " ").replace("\n", " "), text)
        text = re.sub(
            r"<svg [^>]*>",
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" style="max-width:{self.width:g}px" '
            f'role="img" aria-label="{html.escape(english)}">',
            text,
            count=1,
        )
        for colour, variable in _VARIABLES.items():
            text = text.replace(colour, variable)
        text = re.sub(r"@(\d+)@", lambda key: self._words[int(key[1])], text)
        # Every word was escaped above; the rest is matplotlib's own output.
        return Markup(text.strip())  # noqa: S704


def draw_loss(
    steps: npt.NDArray[np.float64],
    losses: npt.NDArray[np.float64],
    valid_steps: npt.NDArray[np.float64],
    valid_losses: npt.NDArray[np.float64],
    num_classes: int,
) -> Markup:
    """Draw the training loss by step, the validation loss and the line of ln C.

    Args:
        steps: (S,) numbers of the optimizer steps.
        losses: (S,) training loss of each, in nats.
        valid_steps: (E,) steps after which the model was evaluated.
        valid_losses: (E,) validation loss then, in nats.
        num_classes: C; the constant answer costs ln C on balanced classes.
    """
    picture = Picture("loss", 460, 300)
    axes = picture.axes(left=48, top=16, right=20, bottom=48)
    constant = math.log(num_classes)
    kept = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), 400)).astype(int))
    axes.plot(steps[kept], losses[kept], color=_FIRST, linewidth=1, alpha=0.3)
    settled = kept[kept >= len(steps) // 40]  # the mean of very few steps is no mean
    axes.plot(steps[settled], _smooth(losses)[settled], color=_FIRST, linewidth=2.2)
    if len(valid_steps):
        axes.plot(valid_steps, valid_losses, color=_SECOND, linewidth=2.2, marker="o", markersize=6)
    axes.axhline(constant, color=_MUTED, linewidth=1.4, linestyle=(0, (4, 4)))
    axes.annotate(
        picture.word(
            f"ln {num_classes} = {constant:.3f}, a constant answer",
            f"ln {num_classes} = {constant:.3f}，恒定答案",
        ),
        (1, constant),
        xycoords=("axes fraction", "data"),
        xytext=(0, 5),
        textcoords="offset points",
        ha="right",
        color=_MUTED,
        fontsize=_FONT_SIZE,
    )
    top = max(constant, float(np.quantile(losses, 0.98)), float(valid_losses.max(initial=0)))
    axes.set_ylim(0, 1.15 * top)
    _label_steps(picture, axes, steps)
    return picture.svg("Loss by training step")


def draw_attempts(
    losses: Sequence[npt.NDArray[np.float64]], label_entropy: float, num_classes: int
) -> Markup:
    """Draw the training loss of all attempts one after the other, with the lines of ln C and H(y).

    Args:
        losses: for each attempt the (S,) loss of its steps, in nats.
        label_entropy: H(y), what the best constant answer costs.
        num_classes: C.
    """
    picture = Picture("attempts", 940, 300)
    axes = picture.axes(left=48, top=30, right=20, bottom=48)
    begin = 0
    for number, values in enumerate(losses, 1):
        steps = begin + 1 + np.arange(len(values), dtype=np.float64)
        colour = _SECOND if number == len(losses) else _FIRST
        kept = np.unique(np.linspace(0, len(values) - 1, min(len(values), 400)).astype(int))
        axes.plot(steps[kept], values[kept], color=colour, linewidth=1, alpha=0.3)
        axes.plot(steps[kept], _smooth(values)[kept], color=colour, linewidth=2.2)
        if begin:
            axes.axvline(begin + 0.5, color=_LINE, linewidth=1.4)
        _mark(picture, axes, f"{number}", (begin + 0.5, 1), ("data", "axes fraction"), "left", (4, 6))
        begin += len(values)
    constant = math.log(num_classes)
    _mark_line(picture, axes, constant, f"ln {num_classes} = {constant:.3f}", "right")
    if abs(constant - label_entropy) > 0.02 * constant:
        _mark_line(picture, axes, label_entropy, f"H(y) = {label_entropy:.3f}", "right")
    everything = np.concatenate(losses)
    # A loss that exploded would press the attempt that learnt flat onto the axis.
    highest = max(4 * constant, 2 * min(float(np.median(values)) for values in losses if len(values)))
    top = 1.15 * max(constant, float(np.quantile(everything, 0.98)))
    if top > highest:
        top = highest
        said = f"cut off here; the highest loss is {np.max(everything):.4g}"
        _mark(picture, axes, said, (1, 1), ("axes fraction", "axes fraction"), "right", (0, 19))
    axes.set_ylim(0, top)
    _label_steps(picture, axes, np.arange(1, begin + 1, dtype=np.float64))
    return picture.svg("Training loss of all attempts, one after the other")


def draw_metrics(
    steps: npt.NDArray[np.float64],
    f1_macro: npt.NDArray[np.float64],
    accuracy: npt.NDArray[np.float64],
    best_step: float,
) -> Markup:
    """Draw macro-F1 and accuracy on the validation rows by step, with the state that was kept."""
    picture = Picture("metrics", 460, 300)
    axes = picture.axes(left=48, top=16, right=20, bottom=48)
    axes.plot(steps, accuracy, color=_FIRST, linewidth=2.2, marker="o", markersize=6)
    axes.plot(steps, f1_macro, color=_SECOND, linewidth=2.2, marker="o", markersize=6)
    low, high = float(min(f1_macro.min(), accuracy.min())), float(max(f1_macro.max(), accuracy.max()))
    room = max(0.02, 0.25 * (high - low))
    axes.set_ylim(max(0.0, low - room), min(1.0, high + room))
    axes.axvline(best_step, color=_MUTED, linewidth=1.4, linestyle=(0, (4, 4)))
    is_right = best_step > (steps.min() + steps.max()) / 2
    axes.annotate(
        picture.word("kept", "保留"),
        (best_step, 0),
        xycoords=("data", "axes fraction"),
        xytext=(-6 if is_right else 6, 8),
        textcoords="offset points",
        ha="right" if is_right else "left",
        color=_MUTED,
        fontsize=_FONT_SIZE,
    )
    axes.yaxis.set_major_formatter(_percent)
    _label_steps(picture, axes, steps)
    return picture.svg("Validation accuracy and macro-F1 by training step")


def draw_confusion(
    confusion: npt.NDArray[np.int64],
    labels: Sequence[str],
    totals: npt.NDArray[np.int64] | None = None,
) -> Markup:
    """Draw a confusion matrix; the shade is the share of the true class, the number counts rows.

    Args:
        confusion: (C, C) rows by true class and predicted class.
        labels: the C class names.
        totals: (C,) rows of each true class; None: the sums of the matrix (with several labels a row they
            count a row more than once).
    """
    assert len(labels) <= MAX_DRAWN_CLASSES, "choose the classes to draw first"
    num_classes = len(labels)
    names = [shorten(label, 16) for label in labels]
    longest = 7.6 * max(display_width(name) for name in names)
    room = 460 if num_classes <= 8 else 940
    cell = max(26.0, min(104.0 if num_classes <= 8 else 56.0, (room - longest - 66) / num_classes))
    is_straight = longest < cell - 6
    left, below = longest + 46, 58 if is_straight else 50 + 0.65 * longest
    side = cell * num_classes
    picture = Picture("confusion", left + side + 20, 12 + side + below)
    axes = picture.axes(left=left, top=12, right=20, bottom=below)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(0, num_classes)
    axes.set_ylim(num_classes, 0)
    whole = confusion.sum(axis=1) if totals is None else totals
    shares = confusion / np.maximum(whole[:, None], 1)
    for row, column in np.ndindex(num_classes, num_classes):
        _draw_cell(axes, row, column, int(confusion[row, column]), float(shares[row, column]), num_classes)
    middles = np.arange(num_classes) + 0.5
    axes.set_yticks(middles, [picture.word(name) for name in names])
    turn: dict[str, Any] = {} if is_straight else {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(middles, [picture.word(name) for name in names], **turn)
    axes.tick_params(labelcolor=_INK)
    style: dict[str, Any] = {"color": _MUTED, "fontsize": _FONT_SIZE, "annotation_clip": False}
    axes.annotate(
        picture.word("predicted", "预测"),
        (num_classes / 2, num_classes),
        (0, -below + 10),
        ha="center",
        **style,
        textcoords="offset points",
    )
    axes.annotate(
        picture.word("true class", "真实类别"),
        (0, num_classes / 2),
        (-left + 18, 0),
        ha="center",
        **style,
        textcoords="offset points",
        rotation=90,
        rotation_mode="anchor",
    )
    return picture.svg("Confusion matrix: rows are true classes, columns are predicted classes")


def draw_calibration(bins: Sequence[Bin], num_classes: int) -> Markup:
    """Draw accuracy by confidence against the diagonal, and how many rows have which confidence."""
    picture = Picture("calibration", 460, 340)
    axes = picture.axes(left=52, top=16, right=20, bottom=120)
    counts = picture.axes(left=52, top=236, right=20, bottom=48)
    filled = [each for each in bins if each.count]
    width = 1 / len(bins)
    first = math.floor(len(bins) / num_classes) * width
    lefts = [each.low for each in filled]
    total = sum(each.count for each in filled)
    axes.bar(lefts, [each.accuracy for each in filled], 0.86 * width, align="edge", color=_FIRST, alpha=0.55)
    axes.plot([first, 1], [first, 1], color=_MUTED, linewidth=1.4, linestyle=(0, (4, 4)))
    middles = [each.low + 0.43 * width for each in filled]
    axes.plot(middles, [each.confidence for each in filled], "o", color=_SECOND, markersize=6)
    heights = [each.count / total for each in filled]
    counts.bar(lefts, heights, 0.86 * width, align="edge", color=_MUTED, alpha=0.6)
    axes.set_ylim(0, 1.02)
    counts.set_ylim(0, 1.1 * max(heights))
    counts.set_yticks([max(heights)])
    for each in (axes, counts):
        each.set_xlim(first - 0.01, 1.01)
        each.xaxis.set_major_formatter(_percent)
        each.yaxis.set_major_formatter(_percent)
    axes.set_xticklabels([])
    _name_axis(picture, counts, ("confidence", "置信度"))
    return picture.svg("Calibration: accuracy by confidence, and the share of rows by confidence")


def draw_lengths(lengths: npt.NDArray[np.int64], max_length: int) -> Markup:
    """Draw how many rows have which length in tokens, and the limit beyond which tokens are cut."""
    picture = Picture("lengths", 460, 300)
    axes = picture.axes(left=52, top=16, right=20, bottom=48)
    top = max(1.0, min(float(lengths.max()), 1.6 * float(np.quantile(lengths, 0.995))))
    is_near = max_length <= 1.5 * top
    right = max(top, 1.08 * max_length) if is_near else top
    width = math.ceil(right / 45)  # whole tokens, so that all bars cover equally many lengths
    edges = np.arange(0, right + width + 1, width)
    heights, _ = np.histogram(np.minimum(lengths, edges[-1]), edges)
    colours = [_WARN if left >= max_length else _FIRST for left in edges[:-1]]
    axes.bar(edges[:-1], heights, 0.9 * np.diff(edges), align="edge", color=colours, alpha=0.75)
    axes.set_xlim(0, edges[-1])
    axes.set_ylim(0, 1.18 * max(heights))
    if is_near:
        axes.axvline(max_length, color=_WARN, linewidth=1.6, linestyle=(0, (4, 4)))
    axes.annotate(
        picture.word(f"limit {max_length:,}", f"上限 {max_length:,}")
        if is_near
        else picture.word(f"limit {max_length:,} →", f"上限 {max_length:,} →"),
        (max_length if is_near else 1.0, 1),
        xycoords=("data" if is_near else "axes fraction", "axes fraction"),
        xytext=(-6, -14),
        textcoords="offset points",
        ha="right",
        color=_WARN if is_near else _MUTED,
        fontsize=_FONT_SIZE,
    )
    _name_axis(picture, axes, ("tokens", "词元数"))
    return picture.svg("Number of rows by length in tokens")


def display_width(text: str) -> int:
    """Return the width of a text in half-width characters (Chinese characters take two)."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def shorten(text: str, limit: int) -> str:
    """Return a text on one line, cut with an ellipsis to a display width of at most `limit`."""
    line = " ".join(text.split())
    if display_width(line) <= limit:
        return line
    kept, width = [], 1
    for char in line:
        width += display_width(char)
        if width > limit:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def _draw_cell(axes: Axes, row: int, column: int, rows: int, share: float, num_classes: int) -> None:
    gap = 0.03
    colour = _FIRST if row == column else _SECOND
    place = (column + gap, row + gap)
    size = 1 - 2 * gap
    axes.add_patch(Rectangle(place, size, size, facecolor=_LINE, alpha=0.35, edgecolor="none"))
    if rows:
        axes.add_patch(
            Rectangle(place, size, size, facecolor=colour, alpha=0.12 + 0.5 * share, edgecolor="none")
        )
    if rows or num_classes <= 8:
        is_large = num_classes <= 5
        text = f"{rows:,}" if num_classes <= 12 or rows < 1000 else f"{rows / 1000:.0f}k"
        centre = (column + 0.5, row + (0.42 if is_large else 0.5))
        axes.annotate(
            text, centre, ha="center", va="center", color=_INK, fontsize=16 if is_large else _FONT_SIZE - 2
        )
        if is_large:
            axes.annotate(
                f"{100 * share:.0f} %",
                (column + 0.5, row + 0.68),
                ha="center",
                va="center",
                color=_INK,
                alpha=0.75,
                fontsize=_FONT_SIZE - 1,
            )


def _mark(
    picture: Picture,
    axes: Axes,
    text: str,
    place: tuple[float, float],
    coords: tuple[str, str],
    align: str,
    offset: tuple[int, int] = (0, 5),
) -> None:
    axes.annotate(
        picture.word(text),
        place,
        xycoords=coords,
        xytext=offset,
        textcoords="offset points",
        ha=align,
        color=_MUTED,
        fontsize=_FONT_SIZE,
    )


def _mark_line(picture: Picture, axes: Axes, level: float, text: str, align: str) -> None:
    axes.axhline(level, color=_MUTED, linewidth=1.4, linestyle=(0, (4, 4)))
    _mark(picture, axes, text, (1, level), ("axes fraction", "data"), align)


def _smooth(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the exponential mean with a memory of a twentieth of the run, corrected at its start."""
    keep = 1 - 1 / max(2.0, len(values) / 20)
    smooth, mean = np.empty_like(values), 0.0
    for place, value in enumerate(values):
        mean = keep * mean + (1 - keep) * value
        smooth[place] = mean / (1 - keep ** (place + 1))
    return smooth


def _label_steps(picture: Picture, axes: Axes, steps: npt.NDArray[np.float64]) -> None:
    last = float(steps.max())
    axes.set_xlim(0, 1.03 * last)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    _name_axis(picture, axes, ("step", "步"))


def _name_axis(picture: Picture, axes: Axes, name: tuple[str, str]) -> None:
    axes.set_xlabel(picture.word(*name), color=_MUTED, fontsize=_FONT_SIZE, labelpad=8)


def _percent(value: float, _place: object = None) -> str:
    return f"{100 * value:.0f} %"
