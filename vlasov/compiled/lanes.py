"""Many problems side by side: numbers that stand for vectors of LLVM, written down like numbers of Python.

A formula for one problem, over objects that add and multiply, is the code for ``WIDTH`` of them: with ``Lane`` entries
it emits instructions on vectors of so many doubles, with NumPy's it computes. Matrices are NumPy
arrays of objects; their loops run while code is made, and leave straight code behind.

Memory is a flat array of slots, each of which holds one number of each problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

WIDTH = 16  # doubles: two registers of AVX-512, so that what waits for one result goes on with the other
_DOUBLE, _INDEX, _BITS = ir.DoubleType(), ir.IntType(64), ir.IntType(WIDTH)
_VECTOR, _WHOLE = ir.VectorType(_DOUBLE, WIDTH), ir.VectorType(_INDEX, WIDTH)
_FLAGS = ("contract",)  # multiply and add may be one operation; nothing is reordered
_STEEP, _BIAS = 2.0**52, 1023 - 0.0450466  # of the bits of a double, which are nearly its logarithm


class Lane:
    """A number of each problem, while code is made for it."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def _made(self, instruction: str, other: Any, *, swapped: bool = False) -> Lane:
        if isinstance(other, np.ndarray):
            return NotImplemented  # NumPy does it entry by entry
        first, second = self.value, constant(other)
        first, second = (second, first) if swapped else (first, second)
        return Lane(self.builder, getattr(self.builder, instruction)(first, second, flags=_FLAGS))

    def __add__(self, other: Any) -> Lane:
        return self._made("fadd", other)

    def __sub__(self, other: Any) -> Lane:
        return self._made("fsub", other)

    def __mul__(self, other: Any) -> Lane:
        return self._made("fmul", other)

    def __truediv__(self, other: Any) -> Lane:
        return self._made("fdiv", other)

    def __rsub__(self, other: Any) -> Lane:
        return self._made("fsub", other, swapped=True)

    def __rtruediv__(self, other: Any) -> Lane:
        return self._made("fdiv", other, swapped=True)

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other: Any) -> Mask:
        return self._compared("<", other)

    def __le__(self, other: Any) -> Mask:
        return self._compared("<=", other)

    def __gt__(self, other: Any) -> Mask:
        return self._compared(">", other)

    def __ge__(self, other: Any) -> Mask:
        return self._compared(">=", other)

    def _compared(self, how: str, other: Any) -> Mask:
        return Mask(self.builder, self.builder.fcmp_ordered(how, self.value, constant(other)))

    def called(self, name: str, *others: Any) -> Lane:
        """What a function of LLVM makes of it."""
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * (1 + len(others)))
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.v{WIDTH}f64")
        return Lane(self.builder, self.builder.call(function, [self.value, *map(constant, others)]))


class Mask:
    """A truth for each problem; comparisons with NaN are false."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.builder, self.builder.and_(self.value, other.value))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.builder, self.builder.or_(self.value, other.value))

    def __invert__(self) -> Mask:
        return Mask(self.builder, self.builder.not_(self.value))

    def bits(self) -> Any:
        """A whole number with a bit for each problem."""
        return self.builder.zext(self.builder.bitcast(self.value, _BITS), _INDEX)


def constant(number: Any) -> Any:
    """The vector of a Lane, or of a number that all share."""
    if isinstance(number, Lane):
        return number.value
    return ir.Constant(_VECTOR, [float(number)] * WIDTH)


def sqrt(number: Any) -> Any:
    """The square root of a Lane, or of NumPy's numbers."""
    return number.called("sqrt") if isinstance(number, Lane) else np.sqrt(number)


def magnitude(number: Any) -> Any:
    """Without its sign."""
    return number.called("fabs") if isinstance(number, Lane) else np.abs(number)


def sign(number: Any) -> Any:
    """1 or -1; of zero, that of its own sign."""
    if not isinstance(number, Lane):
        return np.copysign(1.0, number)
    return Lane(number.builder, constant(1.0)).called("copysign", number)


def where(mask: Any, first: Any, second: Any) -> Any:
    """The first where the mask holds, else the second."""
    if not isinstance(mask, Mask):
        return np.where(mask, first, second)
    return Lane(mask.builder, mask.builder.select(mask.value, constant(first), constant(second)))


def rough_power(number: Any, exponent: float) -> Any:
    """number^exponent to a few per cent, for exponents between -1 and 0 and numbers in 1e-30 ... 1e30: step sizes."""
    if not isinstance(number, Lane):
        return number**exponent
    builder = number.builder
    bits = Lane(builder, builder.sitofp(builder.bitcast(number.value, _WHOLE), _VECTOR))
    raised = bits * exponent + (1 - exponent) * _BIAS * _STEEP
    return Lane(builder, builder.bitcast(builder.fptosi(raised.value, _WHOLE), _VECTOR))


class Memory:
    """Slots of a kernel's array, read and written while its code is made."""

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any) -> None:
        self._builder, self._data = builder, context.make_array(kind)(context, builder, array).data

    def _place(self, slot: Any) -> Any:
        if isinstance(slot, int):
            slot = ir.Constant(_INDEX, slot)
        first = self._builder.mul(slot, ir.Constant(_INDEX, WIDTH))
        return self._builder.bitcast(self._builder.gep(self._data, [first]), _VECTOR.as_pointer())

    def __getitem__(self, slot: Any) -> Lane:
        return Lane(self._builder, self._builder.load(self._place(slot), align=8))

    def __setitem__(self, slot: Any, number: Any) -> None:
        self._builder.store(constant(number), self._place(slot), align=8)

    def shifted(self, slot: int, by: Any) -> Any:
        """A slot further on, by what may be known only when the code runs."""
        if isinstance(by, int):
            return slot + by
        if not isinstance(slot, int):
            return self._builder.add(slot, by)
        return self._builder.add(ir.Constant(_INDEX, slot), by)

    def times(self, index: Any, count: int) -> Any:
        """index count, of which the index is known when the code runs."""
        return self._builder.mul(index, ir.Constant(_INDEX, count))

    def matrix(self, slot: Any, rows: int, columns: int) -> Any:
        """The numbers of a matrix, row by row."""
        found = np.empty((rows, columns), dtype=object)
        for place in range(rows * columns):
            at = slot + place if isinstance(slot, int) else self._builder.add(slot, ir.Constant(_INDEX, place))
            found[divmod(place, columns)] = self[at]
        return found

    def put(self, slot: Any, numbers: Iterable[Any]) -> None:
        """Write numbers one after the other."""
        for place, number in enumerate(numbers):
            at = slot + place if isinstance(slot, int) else self._builder.add(slot, ir.Constant(_INDEX, place))
            self[at] = number

    def each(self, count: int, body: Callable[[Any], None]) -> None:
        """A loop of the code that is made."""
        with cgutils.for_range(self._builder, ir.Constant(_INDEX, count)) as loop:
            body(loop.index)

    def choose(self, number: Any, cases: Iterable[Callable[[], None]]) -> None:
        """The case with that number, from 0 on, known when the code runs."""
        builder, made = self._builder, list(cases)
        after = builder.append_basic_block("after")
        jump = builder.switch(number, after)
        for value, case in enumerate(made):
            block = builder.append_basic_block(f"case{value}")
            jump.add_case(ir.Constant(_INDEX, value), block)
            builder.position_at_end(block)
            case()
            builder.branch(after)
        builder.position_at_end(after)
