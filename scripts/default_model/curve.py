#!/usr/bin/env python3
"""curve.py LOG SVG: the loss of a run, from the lines that `troupe train --log` writes, as a picture."""

import json
import math
import pathlib
import sys

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 320, 48, 36
POINTS = 200


def smoothed(losses):
    """As many points as the picture can show, each the mean of its share."""
    size = math.ceil(len(losses) / POINTS)
    return [(i + size / 2, sum(losses[i : i + size]) / len(losses[i : i + size])) for i in range(0, len(losses), size)]


def picture(losses):
    top = math.log(max(losses)) + 0.1
    low = math.log(min(loss for _, loss in smoothed(losses))) - 0.1
    x = lambda step: LEFT + (WIDTH - LEFT - 16) * step / len(losses)
    y = lambda loss: 12 + (HEIGHT - BOTTOM - 12) * (top - math.log(loss)) / (top - low)
    text = 'font-family="sans-serif" font-size="12" fill="#888"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
    ]
    for loss in (8, 4, 2, 1, 0.5, 0.25):
        if low < math.log(loss) < top:
            lines.append(
                f'<path d="M{LEFT} {y(loss):.1f}H{WIDTH - 16}" stroke="#8884"/>'
                f'<text x="{LEFT - 8}" y="{y(loss) + 4:.1f}" text-anchor="end" {text}>{loss}</text>'
            )
    for part in range(0, 5):
        step = len(losses) * part // 4
        lines.append(f'<text x="{x(step):.1f}" y="{HEIGHT - 16}" text-anchor="middle" {text}>{step}</text>')
    points = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in smoothed(losses))
    lines.append(f'<polyline points="{points}" fill="none" stroke="#2a7ae2" stroke-width="2"/>')
    lines.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 2}" text-anchor="middle" {text}>steps; loss in nats per token</text>'
    )
    return "\n".join([*lines, "</svg>\n"])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    steps = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
    pathlib.Path(sys.argv[2]).write_text(picture([step["loss"] for step in steps if "loss" in step]))
