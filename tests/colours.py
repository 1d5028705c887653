"""How colours look to the colour-blind and in grey, and how far they are apart: for the test of the palette.

Dichromats by the matrices of Machado, Oliveira and Fernandes, A physiologically-based model for simulation of color
vision deficiency (2009), severity 1, which act on linear sRGB; differences by CIEDE2000.
"""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_rgb

MACHADO = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
SIGHTS = {"normal": np.eye(3).tolist(), **MACHADO}
_TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]


def linear(colour):
    """Linear sRGB of whatever matplotlib calls a colour."""
    rgb = np.asarray(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(colour, sight="normal"):
    """CIE L*, a*, b* as somebody with this sight has it, white at D65."""
    seen = np.clip(np.array(SIGHTS[sight]) @ linear(colour), 0.0, 1.0)
    xyz = np.array(_TO_XYZ) @ seen / np.sum(_TO_XYZ, axis=1)
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def lightness(colour):
    """L* from 0 to 100: what is left in grey."""
    return float(lab(colour)[0])


def difference(first, second):
    """CIEDE2000 of two colours in L*, a*, b*."""
    (l1, a1, b1), (l2, a2, b2) = first, second
    seventh = (np.hypot(a1, b1) / 2 + np.hypot(a2, b2) / 2) ** 7
    stretch = 1.5 - 0.5 * np.sqrt(seventh / (seventh + 25.0**7))
    a1, a2 = stretch * a1, stretch * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for b, a in ((b1, a1), (b2, a2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 > 0 else 0.0
    hue = (h1 + turn / 2) % 360 if c1 * c2 > 0 else h1 + h2
    big_l, big_c = l2 - l1, c2 - c1
    big_h = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    t = 1 - 0.17 * _cos(hue - 30) + 0.24 * _cos(2 * hue) + 0.32 * _cos(3 * hue + 6) - 0.20 * _cos(4 * hue - 63)
    s_l = 1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)
    s_c, s_h = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    twist = 60 * np.exp(-(((hue - 275) / 25) ** 2))
    r = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) * np.sin(np.radians(twist))
    x, y, z = big_l / s_l, big_c / s_c, big_h / s_h
    return float(np.sqrt(x**2 + y**2 + z**2 + r * y * z))


def _cos(degrees):
    return np.cos(np.radians(degrees))
