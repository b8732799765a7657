r"""Learning row after row as one Triton program; :mod:`.each_row` has the formulas.

Every program of the grid owns some features: their weights for all outputs, squares of gradients and mean of the
iterates, which stay in its registers where there is room. A row is walked like this::

    part = w'z over the own features          published, one word for each output
    f    = sum of the parts of all programs   waited for
    (eta, g) or (decay, tau) from f           the same numbers in every program
    the own weights move

**Words.** A part travels with the number of its row in one word of 64 bits: 32 of the number, 32 of the row. A word
is written and read whole, so a program that finds the row has the number too; nothing else has to be ordered, no
counter is needed, and sums are taken in the order of the programs: the same bits every time. A number of float64 takes
two words. Words of odd and even rows have places of their own: a program publishes row i + 2 after it has seen every
part of row i + 1, which the others published after they had read all of row i.

**Waiting.** All programs have to run at the same time: at most one for a multiprocessor, by a cooperative launch,
which fails where there is no room for them. A program that has waited too long sets a flag and waits no more; the
caller raises an error. One program alone neither publishes nor waits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from .formulas import (
    TINY,
    Program,
    centred,
    limited,
    loss_of,
    mean_after,
    rate_of_each,
    read_memory,
    step_of,
    store,
    write_memory,
)

ALONE = 4096  # weights up to which one program is faster than several that wait for each other
TILE = 2048  # weights of one program among several,
TOGETHER = 64  # and at most so many programs: more wait longer than they save, unless registers are too small otherwise
RESIDENT = 1 << 15  # numbers of 32 bits that fit in the registers of a program, beside what it works with
CHUNK = 4096  # weights that are worked on at once where they do not
THREADS = tl.constexpr(2048)  # at least those of a program, four times
WAITS = 1 << 23  # times that the words of a row are read before giving up, at least half a microsecond each


class Shape(NamedTuple):
    """How the features are divided."""

    programs: int
    share: int  # features of a program
    block: int  # of them, those worked on at once
    warps: int


def shape_of(width: int, outputs: int, arrays: int, double: bool, most: int, programs: int | None = None) -> Shape:
    """Division of ``width`` features for ``most`` multiprocessors; ``programs`` of them if that is given.

    Parameters
    ----------
    arrays : int
        Weights, squares, mean: how many there are.
    """
    columns = triton.next_power_of_2(outputs)

    def tile(programs: int) -> tuple[int, bool]:
        """Features of a program in one piece, and whether its registers have room for their weights."""
        block = max(16, triton.next_power_of_2(triton.cdiv(width, programs)))
        return block, columns * block * arrays * (2 if double else 1) <= RESIDENT

    if programs is None:
        wanted = min(most, triton.cdiv(columns * width, TILE))
        programs = 1 if columns * width <= ALONE else min(TOGETHER, wanted)
        programs = programs if tile(programs)[1] else wanted
    block, fits = tile(programs)
    if not fits:
        block = max(16, CHUNK // columns)
    share = triton.cdiv(triton.cdiv(width, programs), block) * block
    warps = min(16, max(4, columns * block // 512))
    return Shape(triton.cdiv(width, share), share, block, warps)


def places_read(programs: int, columns: int, warps: int) -> int:
    """Programs whose words are looked at; some of them do not exist, so that no word is read twice for the same sum.

    What several threads have read from one place is equal to the compiler: in a sum over warps it takes the one or the
    other. Words that others are about to write are not: one thread may have found the row's and another the one before.
    So either each warp has all words, one for each of its 32 threads, and sums for itself, or each thread has its own.
    """
    places = triton.next_power_of_2(programs)
    return max(places, (32 if places * columns <= 32 else 32 * warps) // columns)


class WalkedRows(NamedTuple):
    """Rows to learn in order, of one type of numbers.

    Attributes
    ----------
    Z : (m, P)
        Features.
    K : (m,)
        ``z'z`` of each row; not read where it is 1 for all.
    y, weight : (m,)
        A row of weight 0 is scored and skipped.
    F : (m, C)
        Becomes the scores before each update.
    """

    Z: torch.Tensor
    K: torch.Tensor
    y: torch.Tensor
    weight: torch.Tensor
    F: torch.Tensor


class WalkedState(NamedTuple):
    """What the rows change, in place.

    Attributes
    ----------
    w, G, mean : (C, P)
        Weights, squares of gradients and mean of the iterates; None for those that an update does not have.
    memory : (n, C) float64
        The update's memory.
    book : (3,) float64
        Rows so far; count and mean of the target.
    """

    w: torch.Tensor
    G: torch.Tensor | None
    mean: torch.Tensor | None
    memory: torch.Tensor
    book: torch.Tensor


class WalkKind(NamedTuple):
    """What a program is compiled for, beside the division of the features.

    Attributes
    ----------
    outputs : int
    double : bool
        Whether numbers are of float64.
    center, unit, average : bool
        Whether targets have their mean taken away, ``z'z`` is 1 for all rows, and the mean of the iterates answers.
    """

    program: Program
    outputs: int
    double: bool
    center: bool
    unit: bool
    average: bool

    def constants(self, shape: Shape) -> dict[str, Any]:
        """The constants of the program."""
        formulas, columns = self.program, triton.next_power_of_2(self.outputs)
        return {
            "C": self.outputs, "CP": columns, "LOSS": formulas.loss, "REST": formulas.rest, "CLOSED": formulas.closed,
            "UPDATE": formulas.update, "FLAG": formulas.flag, "KIND": formulas.kind, "DECAYS": formulas.decays,
            "CENTER": self.center, "UNIT": self.unit, "AVERAGE": self.average,
            "ACC": tl.float64 if self.double else tl.float32, "SHARE": shape.share, "BLOCK": shape.block,
            "PROGRAMS": shape.programs, "PP": places_read(shape.programs, columns, shape.warps),
        }  # fmt: skip


class Walk:
    """A division of the features, the words of its programs and the flag of a wait that timed out."""

    def __init__(self, kind: WalkKind, held: WalkedState, most: int, programs: int | None = None):
        (outputs, width), device = held.w.shape, held.w.device
        arrays = sum(array is not None for array in held[:3])
        self.kind, self.shape = kind, shape_of(width, outputs, arrays, kind.double, most, programs)
        words = 2 * self.shape.programs * triton.next_power_of_2(outputs) * (2 if kind.double else 1)
        self.words = torch.zeros(words, dtype=torch.int64, device=device)
        self.failed = torch.zeros(1, dtype=torch.int32, device=device)
        self.numbers = torch.tensor(kind.program.numbers, dtype=torch.float64, device=device)
        self.waits = WAITS

    def __call__(self, rows: WalkedRows, held: WalkedState) -> None:
        """Learn rows in order."""
        w, (m, width), shape = held.w, rows.Z.shape, self.shape
        parts = w.new_empty((shape.programs, m, self.kind.outputs)) if self.kind.average else w
        if shape.programs > 1:
            self.words.zero_()
        _walk[(shape.programs,)](
            *rows, *(w if array is None else array for array in held), parts, self.words, self.failed, self.numbers,
            m, width, rows.Z.stride(0), self.waits, **self.kind.constants(shape),
            num_warps=shape.warps, launch_cooperative_grid=shape.programs > 1,
        )  # fmt: skip
        if self.kind.average:
            rows.F.add_(parts.sum(dim=0))

    def check(self) -> None:
        """RuntimeError if a wait has timed out since the last call."""
        if int(self.failed) != 0:
            self.failed.zero_()
            raise RuntimeError(
                "the GPU programs that learn rows together timed out waiting for each other: is another process using "
                "the GPU? The model is unchanged"
            )


@triton.jit(do_not_specialize=["m", "waits"])
def _walk(
    Z, K, y, weight, F, w, G, mean, memory, book, parts, words, failed, numbers, m, width, stride, waits,
    C: tl.constexpr, CP: tl.constexpr, LOSS: tl.constexpr, REST: tl.constexpr, CLOSED: tl.constexpr,
    UPDATE: tl.constexpr, FLAG: tl.constexpr, KIND: tl.constexpr, DECAYS: tl.constexpr, CENTER: tl.constexpr,
    UNIT: tl.constexpr, AVERAGE: tl.constexpr, ACC: tl.constexpr, SHARE: tl.constexpr, BLOCK: tl.constexpr,
    PROGRAMS: tl.constexpr, PP: tl.constexpr,
):  # fmt: skip
    ONE: tl.constexpr = C == 1
    RESIDENT: tl.constexpr = SHARE == BLOCK
    WIDE: tl.constexpr = 2 if tl.float64 == ACC else 1  # words of a number
    own = tl.program_id(0)
    if ONE:
        col = own * 0
    else:
        col = tl.arange(0, CP)
    real = col < C
    p = tl.load(numbers).to(ACC)
    q0 = tl.load(numbers + 1).to(ACC)
    q1 = tl.load(numbers + 2).to(ACC)
    q2 = tl.load(numbers + 3).to(ACC)
    t = tl.load(book)
    count = tl.load(book + 1)
    offset = tl.load(book + 2)
    a0, a1, a2, a3, v0, v1, v2, v3 = read_memory(memory, t, col, real, C, UPDATE)
    # Part of every part that is published: what was read must have arrived by then, because the first program, when it
    # has all parts, writes to the same places.
    none = 0.0 * t + 0.0 * count + 0.0 * offset + 0.0 * a0 + 0.0 * a1 + 0.0 * a2 + 0.0 * a3
    nothing = (col * 0 + none + 0.0 * v0 + 0.0 * v1 + 0.0 * v2 + 0.0 * v3).to(ACC)
    first = own * SHARE
    stop = tl.minimum(first + SHARE, width)
    feature = first + tl.arange(0, BLOCK)
    if RESIDENT:
        w_own, G_own, mean_own = fetch(w, G, mean, feature, stop, col, real, width, UPDATE, AVERAGE, ONE)
    late = 0
    # What a row needs is fetched while the row before is worked on; features, which are far away, two rows ahead.
    z = tl.load(Z + feature, mask=feature < stop, other=0.0).to(ACC)
    if RESIDENT:
        Z += tl.where(m > 1, stride, 0)
        z_next = tl.load(Z + feature, mask=feature < stop, other=0.0).to(ACC)
    y_i = tl.load(y).to(ACC)
    importance = tl.load(weight).to(ACC)
    k = square_of(K, UNIT, ACC)
    tag = (own * 0 + 1).to(tl.int64)  # of the row, in its words; 0 is that of no row
    side = own * 0
    parts += own * m * C
    for i in range(0, m):
        if RESIDENT:
            part = nothing + along(w_own, z, ONE)
            if AVERAGE:
                answer = along(mean_own, z, ONE)
        else:
            part = nothing
            answer = nothing
            for start in range(first, stop, BLOCK):
                feature = start + tl.arange(0, BLOCK)
                z = tl.load(Z + feature, mask=feature < stop, other=0.0).to(ACC)
                w_own, G_own, mean_own = fetch(w, G, mean, feature, stop, col, real, width, "none", AVERAGE, ONE)
                part += along(w_own, z, ONE)
                if AVERAGE:
                    answer += along(mean_own, z, ONE)
        if PROGRAMS > 1:
            # no warp may still look for the row before: whoever sees this row may write over its words
            tl.debug_barrier()
            publish(part, words + side, tag, own, col, real, CP, ONE, ACC)
        ahead = tl.where(i + 1 < m, 1, 0)
        if RESIDENT:
            Z += tl.where(i + 2 < m, stride, 0)
            z_later = tl.load(Z + feature, mask=feature < stop, other=0.0).to(ACC)
        y += ahead
        weight += ahead
        K += ahead
        y_next = tl.load(y).to(ACC)
        importance_next = tl.load(weight).to(ACC)
        k_next = square_of(K, UNIT, ACC)
        # So is all that does not depend on the score.
        target, shown = centred(y_i, nothing, offset, CENTER, ACC)
        act = importance > 0.0
        t += tl.where(act, 1.0, 0.0)
        share = tl.where(act, 1.0 / tl.maximum(t, 1.0).to(ACC), 0.0)
        offset, count = mean_after(offset, count, y_i, importance, act, CENTER, ACC)
        if UPDATE == "adagrad":
            decay, most, a0, a1, a2, a3 = rate_of_each(
                target, k, act, col, q0, a0, a1, a2, a3, v0, LOSS, FLAG, KIND, UNIT, ACC
            )
        if PROGRAMS > 1:
            f, waits = gathered(words + side, tag, waits, CP, PROGRAMS, PP, C, ONE, ACC)
            late = tl.where(waits == 0, 1, late)
        else:
            f = part
        if UPDATE == "adagrad":
            _, g = loss_of(target, f, col, real, p, C, LOSS, REST, CLOSED, KIND, ACC)
            tau = limited(g, most, LOSS, KIND)
        else:
            decay, tau, a0, a1, a2, a3, v0, v1, v2, v3 = step_of(
                target, f, k, act, t, col, real, p, q0, q1, q2, a0, a1, a2, a3, v0, v1, v2, v3,
                C, LOSS, REST, CLOSED, UPDATE, FLAG, KIND, UNIT, ACC,
            )  # fmt: skip
            decay = tl.where(act, decay, 1.0)
        tau = tl.where(act, tau * importance, 0.0)
        if AVERAGE:  # the caller adds the answers of the programs up
            store(parts, answer, col, real, ONE)
            parts += C
        else:
            shown += f
        if own == 0:
            store(F, shown, col, real, ONE)
        F += C
        if RESIDENT:
            w_own, G_own, mean_own = moved(
                w_own, G_own, mean_own, z, decay, tau, share, q1, UPDATE, DECAYS, AVERAGE, ONE
            )
            z = z_next
            z_next = z_later
        else:
            for start in range(first, stop, BLOCK):
                feature = start + tl.arange(0, BLOCK)
                z = tl.load(Z + feature, mask=feature < stop, other=0.0).to(ACC)
                w_own, G_own, mean_own = fetch(w, G, mean, feature, stop, col, real, width, UPDATE, AVERAGE, ONE)
                w_own, G_own, mean_own = moved(
                    w_own, G_own, mean_own, z, decay, tau, share, q1, UPDATE, DECAYS, AVERAGE, ONE
                )
                put(w, G, mean, w_own, G_own, mean_own, feature, stop, col, real, width, UPDATE, AVERAGE, ONE)
            Z += ahead * stride
            tl.debug_barrier()  # what one thread has stored another may read
        y_i = y_next
        importance = importance_next
        k = k_next
        tag += 1
        side = PROGRAMS * CP * WIDE - side
    if RESIDENT:
        put(w, G, mean, w_own, G_own, mean_own, feature, stop, col, real, width, UPDATE, AVERAGE, ONE)
    # Warps wait each for itself, and one alone may have given up: every thread tells what it knows.
    thread = tl.arange(0, THREADS)
    tl.store(failed + thread * 0, 1, mask=thread * 0 + late > 0)
    if own == 0:
        tl.store(book, t)
        tl.store(book + 1, count)
        tl.store(book + 2, offset)
        write_memory(memory, col, real, a0, a1, a2, a3, v0, v1, v2, v3, C, UPDATE)


@triton.jit
def square_of(K, UNIT: tl.constexpr, ACC: tl.constexpr):
    """``z'z`` of a row."""
    if UNIT:
        return tl.full([], 1.0, ACC)
    else:
        return tl.load(K).to(ACC)


@triton.jit
def beside(x, ONE: tl.constexpr):
    """Numbers of the outputs (CP,), to be combined with features."""
    if ONE:
        return x
    else:
        return x[:, None]


@triton.jit
def along(w, z, ONE: tl.constexpr):
    """``w'z`` of every output."""
    if ONE:
        return tl.sum(w * z, axis=0)
    else:
        return tl.sum(w * z[None, :], axis=1)


@triton.jit
def places(feature, stop, col, real, width, ONE: tl.constexpr):
    """Where the weights of features are, and whether there are such."""
    if ONE:
        return feature, feature < stop
    else:
        return col.to(tl.int64)[:, None] * width + feature[None, :], real[:, None] & (feature < stop)[None, :]


@triton.jit
def fetch(w, G, mean, feature, stop, col, real, width, UPDATE: tl.constexpr, AVERAGE: tl.constexpr, ONE: tl.constexpr):
    """Weights, squares and mean of features; what there is not is the weights again."""
    at, there = places(feature, stop, col, real, width, ONE)
    w_own = tl.load(w + at, mask=there, other=0.0)
    G_own = w_own
    mean_own = w_own
    if UPDATE == "adagrad":
        G_own = tl.load(G + at, mask=there, other=0.0)
    if AVERAGE:
        mean_own = tl.load(mean + at, mask=there, other=0.0)
    return w_own, G_own, mean_own


@triton.jit
def put(
    w, G, mean, w_own, G_own, mean_own, feature, stop, col, real, width,
    UPDATE: tl.constexpr, AVERAGE: tl.constexpr, ONE: tl.constexpr,
):  # fmt: skip
    """Back to where :func:`fetch` found them."""
    at, there = places(feature, stop, col, real, width, ONE)
    tl.store(w + at, w_own, mask=there)
    if UPDATE == "adagrad":
        tl.store(G + at, G_own, mask=there)
    if AVERAGE:
        tl.store(mean + at, mean_own, mask=there)


@triton.jit
def moved(
    w, G, mean, z, decay, tau, share, fade,
    UPDATE: tl.constexpr, DECAYS: tl.constexpr, AVERAGE: tl.constexpr, ONE: tl.constexpr,
):  # fmt: skip
    """Weights, squares and mean after a row; fade is AdaGrad's, share 1/t or, for a row that does not count, 0."""
    if not ONE:
        z = z[None, :]
    step = beside(tau, ONE) * z
    if UPDATE == "adagrad":
        G = beside(tl.where(tau != 0.0, fade, 1.0), ONE) * G + step * step
        if w.dtype == tl.float64:
            w = w - beside(decay, ONE) * step / tl.sqrt(G + TINY)
        else:
            w = w - beside(decay, ONE) * step * tl.rsqrt(G + TINY)
    elif DECAYS:
        w = beside(decay, ONE) * w + step
    else:
        w = w + step
    if AVERAGE:
        mean = mean + (w - mean) * share
    return w, G, mean


@triton.jit
def publish(part, words, tag, own, col, real, CP: tl.constexpr, ONE: tl.constexpr, ACC: tl.constexpr):
    """The own parts of a row, each in a word with the row's tag (in two, where it has 64 bits)."""
    if tl.float64 == ACC:
        bits = part.to(tl.uint64, bitcast=True)
        at = words + own * (2 * CP) + col
        send(at, bits.to(tl.uint32), tag, real, ONE)
        send(at + CP, (bits >> 32).to(tl.uint32), tag, real, ONE)
    else:
        send(words + own * CP + col, part.to(tl.uint32, bitcast=True), tag, real, ONE)


@triton.jit
def send(at, bits, tag, real, ONE: tl.constexpr):
    """Words of 32 bits and a tag; an exchange, since a plain store may be seen late."""
    word = bits.to(tl.int64) | (tag << 32)
    if ONE:
        tl.atomic_xchg(at, word, sem="relaxed")
    else:
        tl.atomic_xchg(at, word, mask=real, sem="relaxed")


@triton.jit
def gathered(
    words, tag, waits, CP: tl.constexpr, PROGRAMS: tl.constexpr, PP: tl.constexpr, C: tl.constexpr,
    ONE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Sums of the parts of a row over the programs, when all are there; and ``waits``, or 0 if that took too long."""
    WIDE: tl.constexpr = 2 if tl.float64 == ACC else 1
    program = tl.arange(0, PP)
    if ONE:
        at = words + program * WIDE
        there = program < PROGRAMS
    else:
        output = tl.arange(0, CP)
        at = words + program[:, None] * (WIDE * CP) + output[None, :]
        there = (program < PROGRAMS)[:, None] & (output < C)[None, :]
    low = tl.load(at, mask=there, other=0, volatile=True)
    high = low
    if WIDE == 2:
        high = tl.load(at + CP, mask=there, other=0, volatile=True)
    missing = missing_of(low, high, tag, there, ONE)
    looks = 0
    while (missing > 0) & (looks < waits):
        low = tl.load(at, mask=there, other=0, volatile=True)
        high = low
        if WIDE == 2:
            high = tl.load(at + CP, mask=there, other=0, volatile=True)
        missing = missing_of(low, high, tag, there, ONE)
        looks += 1
    if WIDE == 2:
        bits = (high.to(tl.uint32).to(tl.uint64) << 32) | low.to(tl.uint32).to(tl.uint64)
        parts = bits.to(tl.float64, bitcast=True)
    else:
        parts = low.to(tl.uint32).to(tl.float32, bitcast=True)
    return tl.sum(parts, axis=0), tl.where(missing > 0, 0, waits)


@triton.jit
def missing_of(low, high, tag, there, ONE: tl.constexpr):
    """Whether a word is not yet that of the row."""
    other = tl.where(there & (((low >> 32) != tag) | ((high >> 32) != tag)), 1, 0)
    if ONE:
        return tl.max(other, axis=0)
    else:
        return tl.max(tl.max(other, axis=1), axis=0)
