"""The colours of kinds, such as GPU models, can be told apart.

They can on both grounds and with any colour vision. Vision is simulated with the matrices of
Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
Deficiency", 2009, severity 1.0; differences are CIE 1976 ΔE.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from django.contrib.staticfiles import finders
from numpy.typing import NDArray

from portal.web.charts.chart import KINDS, SYMBOLS, look_of

Values = NDArray[np.float64]
GROUNDS = {"light": "#ffffff", "dark": "#212529"}
VISIONS = {
    "ordinary": np.eye(3),
    "protan": np.array([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]),
    "deutan": np.array([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]),
    "tritan": np.array([[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]),
}
TO_XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
CLEARLY_APART = 20.0  # a tenth of that is about what an eye notices side by side
WCAG_GRAPHICS = 3.0


def colours(theme: str) -> list[str]:
    path = finders.find("css/portal.css")
    assert isinstance(path, str)
    rules = re.findall(r"([^{}]*)\{([^}]*)\}", Path(path).read_text())
    found = {
        name: value
        for selector, body in rules
        if ("dark" in selector) == (theme == "dark")
        for name, value in re.findall(r"(--chart-kind-\d+): (#[0-9a-f]{6})", body)
    }
    return [found[kind.removeprefix("var(").removesuffix(")")] for kind in KINDS]


def linear(colour: str) -> Values:
    """sRGB in linear light, 0 to 1."""
    channels = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(light: Values) -> Values:
    xyz = TO_XYZ @ np.clip(light, 0, 1) / TO_XYZ.sum(axis=1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """WCAG 2.2's contrast ratio."""
    low, high = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", GROUNDS)
def test_kinds_stand_out_from_their_ground(theme: str) -> None:
    assert min(contrast(colour, GROUNDS[theme]) for colour in colours(theme)) >= WCAG_GRAPHICS


@pytest.mark.parametrize("theme", GROUNDS)
@pytest.mark.parametrize("vision", VISIONS)
def test_kinds_are_told_apart(theme: str, vision: str) -> None:
    seen = [lab(VISIONS[vision] @ linear(colour)) for colour in colours(theme)]
    nearest = min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2))
    assert nearest >= CLEARLY_APART


def test_no_two_of_many_kinds_look_alike() -> None:
    looks = [tuple(look_of(number).values()) for number in range(len(KINDS) * len(SYMBOLS))]
    assert len(set(looks)) == len(looks)
