r"""Texts as hashed pieces, and what these say of the target: six scores of every row, made before it is learned.

The pieces of a text are its words and pairs of words, and the 3 to 5 characters that follow on each other within a
word, blanks around it included. A piece that comes c times counts :math:`x = \pm\log_2(1 + c)`; place and sign are
those of its hash. For each of the two families of pieces there are three learners. With n the sum of :math:`|x|` of a
piece in all M rows, p in the m rows of the label, N and P such sums over all pieces, and V different pieces so far,

.. math:: r = \log\frac{(p + 1)(N - P + V)}{(n - p + 1)(P + V)}, \quad
          z = |x| \log\frac{(p + 1)(M - m + 2)}{(n - p + 1)(m + 2)}

say how much likelier a piece is with the label, among pieces (naive Bayes) and among rows. The scores are

.. math:: b_1 + w_1'x/\|x\|, \quad b_2 + w_2'z/\|z\|, \quad
          \min(0.7,\, 2.1/\sqrt{1 + \|x\|_1})\, \Bigl(\textstyle\sum |x| r + \log\frac{m + 1}{M - m + 1}\Bigr);

naive Bayes trusts itself too much. The weights learn the logistic loss by AdaGrad (Duchi, Hazan, Singer 2011) with
steps of 0.3; that pieces count by their log-odds is from Wang and Manning (2012). There is one output for two labels,
and one for each of more. Numbers are learned as differences t from the running mean in running deviations, by the
squared loss; r is then the shrunk mean :math:`\sum |x| t/(n + 1)` of a piece, and z is :math:`|x| r`.

The readable twin of cpp/passes/text.hpp, to the last bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

PLACES = 1 << 18  # of a family
MAX_CHARACTERS = 100_000  # of a text; what follows is not read
FAMILIES, LEARNERS = 2, 3
SCORES = FAMILIES * LEARNERS
COUNTED, PER_OUTPUT = 1, 5  # numbers of a piece: of all rows, and of an output: its sum, then weight and squares twice
SUMS, OUTPUT_SUMS = 3, 6  # N, V, M; and of an output P, m, then intercept and its squares twice
STEP, START = 0.3, 1e-8
FAR = 5.0  # deviations beyond which a target, or an error, is drawn in
MAX_SCORE = 8.0
AMOUNTS = np.array([math.log2(1 + c) for c in range(256)])  # of a piece that comes so often; more count as 255
_BASIS, _PRIME, _MIX, _ALL = 14695981039346656037, 1099511628211, 0xBF58476D1CE4E5B9, (1 << 64) - 1


def pieces_of(characters: list[int], family: int) -> list[tuple[int, float]]:
    """Places and signed amounts of the pieces of a text, given as code points, in the order of their hashes."""
    found: dict[int, int] = {}
    words, start = list[list[int]](), 0
    for end, c in enumerate([*characters, 32]):
        if is_space(c) or (family == 0 and is_mark(c)):
            if end > start:
                words.append(characters[start:end])
            start = end + 1
    for i, word in enumerate(words):
        if family == 0:
            some = [word, [*words[i - 1], 32, *word]] if i else [word]
        else:
            padded = [32, *word, 32]
            some = [padded[at : at + size] for size in (3, 4, 5) for at in range(len(padded) - size + 1)]
        for piece in some:
            key = hashed(piece) % (2 * PLACES)
            found[key] = found.get(key, 0) + 1
    return [
        (key % PLACES, (-1.0 if key // PLACES else 1.0) * float(AMOUNTS[min(found[key], 255)])) for key in sorted(found)
    ]


def hashed(piece: list[int]) -> int:
    """FNV-1a over code points, stirred once more."""
    h = _BASIS
    for c in piece:
        h = (h ^ c) * _PRIME & _ALL
    h = (h ^ h >> 29) * _MIX & _ALL
    return h ^ h >> 32


def is_space(c: int) -> bool:
    """Whether a code point is between words."""
    return c <= 0x20 or c in (0x85, 0xA0, 0x3000) or 0x2000 <= c <= 0x200B


def is_mark(c: int) -> bool:
    """Whether a code point, no space, is a mark and no part of a word."""
    if c < 0x80:
        return not (0x30 <= c <= 0x39 or 0x41 <= c <= 0x5A or 0x61 <= c <= 0x7A)
    return (c <= 0xBF and c not in (0xAA, 0xB5, 0xBA)) or 0x2000 <= c <= 0x206F or 0x3001 <= c <= 0x303F


def text_pieces(characters: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pieces of texts that follow on each other: places (m,) int32, amounts (m,), and where those of a family end.

    The last, (2n,) int64, has a text's words and then its characters.
    """
    places, amounts, stops, start = list[int](), list[float](), list[int](), 0
    for end in ends.tolist():
        for family in range(FAMILIES):
            for place, amount in pieces_of(characters[start:end].tolist(), family):
                places.append(place)
                amounts.append(amount)
            stops.append(len(places))
        start = end
    return np.array(places, np.int32), np.array(amounts, np.float64), np.array(stops, np.int64)


def text_pass(state: dict[str, Any], block: dict[str, Any], numbers: bool, out: np.ndarray, units: np.ndarray) -> None:
    """Scores of n rows, each of which is then learned, if there are targets.

    Parameters
    ----------
    state : dict
        table : (2 * PLACES, 1 + 5 C) float32
            n of a piece, and for each output its sum, w_1, squares, w_2, squares.
        sums : (2, 3 + 6 C) float64
        target : (3,) float64
            Weight, mean, and sum of squared differences of numbers.
    block : dict
        places, amounts, stops
            Pieces, see :func:`text_pieces`; a row without any is not learned, and its scores are 0.
        Y : (n, C) float64, or None
            Targets: 1 for the label of an output, 0 for any other; or numbers.
        weight : (n,) float64, or None
    numbers : bool
        Whether targets are numbers.
    out : (6, n, C) float64
    units : (n, 2) float64
        Mean and deviation of the numbers before each row.
    """
    table, sums, target = state["table"], state["sums"], state["target"]
    stops, start = block["stops"].tolist(), 0
    for i in range(len(units)):
        count, mean, m2 = target.tolist()
        known = not numbers or (count > 0.0 and m2 > 0.0)
        deviation = math.sqrt(m2 / count) if numbers and known else 1.0
        units[i] = mean, deviation
        ends = stops[FAMILIES * i : FAMILIES * (i + 1)]
        first, start = start, ends[-1]
        out[:, i] = 0.0
        if first == ends[-1]:
            continue
        y = None if block["Y"] is None else block["Y"][i].tolist()
        w = 1.0 if block["weight"] is None else float(block["weight"][i])
        learns = y is not None and w > 0.0
        t = None
        if learns and known:
            assert y is not None
            t = [_drawn_in((v - mean) / deviation, FAR) for v in y] if numbers else y
        for family, end in enumerate(ends):
            own = (block[name][first:end].tolist() for name in ("places", "amounts"))
            pieces = [(family * PLACES + place, amount) for place, amount in zip(*own, strict=True)]
            _family(table, sums[family], pieces, t, w, numbers, out[LEARNERS * family : LEARNERS * (family + 1), i])
            first = end
        if learns and numbers:
            assert y is not None
            delta = y[0] - mean
            target[0] = count + w
            target[1] = mean + w * delta / (count + w)
            target[2] = m2 + w * delta * (y[0] - target[1])


def _family(
    table: np.ndarray,
    sums: np.ndarray,
    pieces: list[tuple[int, float]],
    t: Any,
    w: float,
    numbers: bool,
    out: np.ndarray,
) -> None:
    """Scores (3, C) of a row by one family of its pieces, which then learn its targets t (C,), if there are any."""
    C, size, squares = out.shape[1], 0.0, 0.0
    total, different, rows = sums[:SUMS].tolist()
    different = max(different, 1.0)
    for _, x in pieces:
        size += abs(x)
        squares += x * x
    if not pieces:
        return
    norm, trust = math.sqrt(squares), min(0.7, 2.1 / math.sqrt(1.0 + size))
    for c in range(C):
        at, own = COUNTED + PER_OUTPUT * c, sums[SUMS + OUTPUT_SUMS * c :]
        positive, m, b1, B1, b2, B2 = own[:OUTPUT_SUMS].tolist()
        odds = total - positive + different, positive + different
        shift = 0.0 if numbers else math.log((rows - m + 2.0) * odds[1] / ((m + 2.0) * odds[0]))
        linear = weighted = length = bayes = 0.0
        z = []
        for k, x in pieces:
            n = float(table[k, 0])
            p, w1, _, w2, _ = table[k, at : at + PER_OUTPUT].tolist()
            if numbers:
                r = p / (n + 1.0)
            else:
                others = max(n - p, 0.0)
                r = math.log((p + 1.0) * odds[0] / ((others + 1.0) * odds[1]))
            z.append(abs(x) * (r + shift))
            linear += x * w1
            weighted += z[-1] * w2
            length += z[-1] * z[-1]
            bayes += abs(x) * r
        length = math.sqrt(length)
        prior = 0.0 if numbers else math.log((m + 1.0) / (rows - m + 1.0))
        scores = (b1 + linear / norm, b2 + (weighted / length if length > 0.0 else 0.0), trust * (bayes + prior))
        out[:, c] = [_drawn_in(f, MAX_SCORE) for f in scores]
        if t is None:
            continue
        errors = [_drawn_in(f - t[c], FAR) if numbers else _sigmoid(f) - t[c] for f in scores[:2]]
        d1, d2 = errors[0] * w, errors[1] * w
        for (k, x), v in zip(pieces, z, strict=True):
            _step(table, k, at + 1, d1 * (x / norm))
            if length > 0.0:
                _step(table, k, at + 3, d2 * (v / length))
        B1, B2 = B1 + d1 * d1, B2 + d2 * d2
        own[2:6] = b1 - STEP * d1 / math.sqrt(B1 + START), B1, b2 - STEP * d2 / math.sqrt(B2 + START), B2
        own[0] = positive + size * w * t[c]
        own[1] = m + w * t[c]
    if t is None:
        return
    for k, x in pieces:
        if table[k, 0] == 0.0:
            sums[1] += 1.0
        table[k, 0] = np.float32(float(table[k, 0]) + abs(x) * w)
        for c in range(C):
            at = COUNTED + PER_OUTPUT * c
            table[k, at] = np.float32(float(table[k, at]) + abs(x) * w * t[c])
    sums[0] += size * w
    sums[2] += w


def _step(table: np.ndarray, k: int, at: int, g: float) -> None:
    """AdaGrad: a step of the weight at a place, whose sum of squares is behind it."""
    G = float(table[k, at + 1]) + g * g
    table[k, at + 1] = np.float32(G)
    table[k, at] = np.float32(float(table[k, at]) - STEP * g / math.sqrt(G + START))


def _drawn_in(v: float, most: float) -> float:
    return min(max(v, -most), most)


def _sigmoid(f: float) -> float:
    return 1.0 / (1.0 + math.exp(-_drawn_in(f, 30.0)))
