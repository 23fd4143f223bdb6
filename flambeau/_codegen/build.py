"""The language in which kernels are written: Python that emits LLVM's intermediate representation.

A `Builder` writes one function. Values have operators, loops are context managers, variables are assigned to:

    with b.loop(0, rows) as row:
        total = b.variable(F32, 0.0)
        for column, lanes in b.lanes(0, columns, 16):         # a loop over vectors, then one over what is left
            total.add(b.load(x, float32, row * columns + column, lanes))
        b.store(y, float32, row, total.value)

Vectors wider than the processor's registers are split by LLVM: the pieces are independent, which keeps its pipelines
busy. Integers are 64 bits wide and signed unless said otherwise. Nothing is reordered or fused unless a kernel asks
for it (`fma`, `b.total`), so that results are the same on every machine with the same vector width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._core.process.processor import ON_X86_64
from . import constants, types
from .ir import ir
from .types import BOOL, F16, F32, F64, I8, I16, I32, I64, POINTER, VOID, Scalar

Number = int | float | bool


class Value:
    """A value in a register: a number, a vector of numbers, or a pointer."""

    __slots__ = ("builder", "ir", "signed")

    def __init__(self, builder: Builder, value: ir.Value, signed: bool = True) -> None:
        self.builder = builder
        self.ir = value
        self.signed = signed

    @property
    def type(self) -> ir.Type:
        return self.ir.type

    @property
    def lanes(self) -> int:
        """How many numbers it holds."""
        return self.ir.type.count if isinstance(self.ir.type, ir.VectorType) else 1

    @property
    def element(self) -> ir.Type:
        """The type of one of its numbers."""
        return self.ir.type.element if isinstance(self.ir.type, ir.VectorType) else self.ir.type

    @property
    def is_float(self) -> bool:
        return isinstance(self.element, (ir.FloatType, ir.DoubleType, ir.HalfType))

    def _binary(self, other: Operand, for_floats: str, for_integers: str, swapped: bool = False) -> Value:
        left, right = self.builder.matched(self, other)
        if swapped:
            left, right = right, left
        name = for_floats if left.is_float else for_integers
        return Value(self.builder, getattr(self.builder.ir, name)(left.ir, right.ir), self.signed)

    def __add__(self, other: Operand) -> Value:
        if self.type == POINTER:
            return self.builder.offset(self, other)
        return self._binary(other, "fadd", "add")

    def __radd__(self, other: Operand) -> Value:
        return self._binary(other, "fadd", "add", True)

    def __sub__(self, other: Operand) -> Value:
        return self._binary(other, "fsub", "sub")

    def __rsub__(self, other: Operand) -> Value:
        return self._binary(other, "fsub", "sub", True)

    def __mul__(self, other: Operand) -> Value:
        return self._binary(other, "fmul", "mul")

    def __rmul__(self, other: Operand) -> Value:
        return self._binary(other, "fmul", "mul", True)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary(other, "fdiv", "sdiv" if self.signed else "udiv")

    def __rtruediv__(self, other: Operand) -> Value:
        return self._binary(other, "fdiv", "sdiv" if self.signed else "udiv", True)

    def __floordiv__(self, other: Operand) -> Value:
        """The quotient of integers, rounded towards zero."""
        return self._binary(other, "fdiv", "sdiv" if self.signed else "udiv")

    def __mod__(self, other: Operand) -> Value:
        """What `//` leaves: it has the sign of the dividend."""
        return self._binary(other, "frem", "srem" if self.signed else "urem")

    def __and__(self, other: Operand) -> Value:
        return self._binary(other, "", "and_")

    def __or__(self, other: Operand) -> Value:
        return self._binary(other, "", "or_")

    def __xor__(self, other: Operand) -> Value:
        return self._binary(other, "", "xor")

    def __lshift__(self, other: Operand) -> Value:
        return self._binary(other, "", "shl")

    def __rshift__(self, other: Operand) -> Value:
        return self._binary(other, "", "ashr" if self.signed else "lshr")

    def __neg__(self) -> Value:
        if self.is_float:
            return Value(self.builder, self.builder.ir.fneg(self.ir))
        return Value(self.builder, self.builder.ir.neg(self.ir), self.signed)

    def __invert__(self) -> Value:
        return Value(self.builder, self.builder.ir.not_(self.ir), self.signed)

    def _compare(self, how: str, other: Operand) -> Value:
        left, right = self.builder.matched(self, other)
        build = self.builder.ir
        if left.is_float:
            # "Not equal" is true of NaN; every other comparison with NaN is false.
            compared = (build.fcmp_unordered if how == "!=" else build.fcmp_ordered)(how, left.ir, right.ir)
        elif self.signed and left.type != POINTER:
            compared = build.icmp_signed(how, left.ir, right.ir)
        else:
            compared = build.icmp_unsigned(how, left.ir, right.ir)
        return Value(self.builder, compared, False)

    def __lt__(self, other: Operand) -> Value:
        return self._compare("<", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("<=", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare(">", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare(">=", other)

    # A comparison is code, not a truth value.
    def __eq__(self, other: Operand) -> Value:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: Operand) -> Value:  # type: ignore[override]
        return self._compare("!=", other)

    __hash__ = None  # type: ignore[assignment]  # as in all classes whose comparisons are no truth values

    def __bool__(self) -> bool:
        raise TypeError("a value of generated code is not known while the code is written: use `b.when` or `b.select`")


Operand = Value | Number


class Variable:
    """A place on the stack that can be assigned to. LLVM keeps it in a register."""

    __slots__ = ("_builder", "_place", "_signed", "_type")

    def __init__(self, builder: Builder, type_: ir.Type, initial: Operand | None, signed: bool = True) -> None:
        self._builder = builder
        self._type = type_
        self._signed = signed
        self._place = builder.room(type_)
        if initial is not None:
            self.value = builder.constant(type_, initial)

    @property
    def value(self) -> Value:
        return Value(self._builder, self._builder.ir.load(self._place, typ=self._type), self._signed)

    @value.setter
    def value(self, new: Operand) -> None:
        self._builder.ir.store(self._builder.constant(self._type, new).ir, self._place)

    def add(self, other: Operand) -> None:
        """Increase it."""
        self.value = self.value + other


ALL_PASSES = "all_passes"
"""The mark of modules that gain by all that LLVM can do for them."""


class Builder:
    """Writes the body of one function."""

    evaluates = False
    """Whether values are computed at once, by NumPy (`on_numpy/builder.py`), in place of code that is written."""

    def __init__(self, module: ir.Module, name: str, returns: ir.Type, arguments: Sequence[ir.Type]) -> None:
        self.module = module
        self.function = _function(module, name, returns, arguments)
        self.ir = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.arguments = [Value(self, argument) for argument in self.function.args]
        self.parallel_functions = 0

    def want_all_passes(self) -> None:
        """Let LLVM improve the whole module by all means, which takes it several times as long."""
        self.module.add_named_metadata(ALL_PASSES)

    # Constants and conversions

    def constant(self, type_: ir.Type, value: Operand) -> Value:
        """`value` as one of `type_`; a number is copied to every lane of a vector."""
        if isinstance(value, Value):
            if isinstance(type_, ir.VectorType) and value.lanes == 1:
                return self.splat(value, type_.count)
            return value
        element = type_.element if isinstance(type_, ir.VectorType) else type_
        if isinstance(element, ir.IntType):
            number: Any = int(value)
        elif type_ == POINTER:
            number = None
        else:
            number = float(value)
        return Value(self, constants.number(type_, number))

    def integer(self, value: Operand) -> Value:
        """A 64-bit integer."""
        return self.constant(I64, value)

    def matched(self, left: Operand, right: Operand) -> tuple[Value, Value]:
        """Two operands of one type: numbers and single values follow the other operand."""
        if not isinstance(left, Value):
            assert isinstance(right, Value)
            left = self.constant(right.type, left)
        if not isinstance(right, Value):
            right = self.constant(left.type, right)
        if left.lanes != right.lanes:
            if left.lanes == 1:
                left = self.splat(left, right.lanes)
            else:
                right = self.splat(right, left.lanes)
        if left.type != right.type:
            raise TypeError(f"operands of different types: {left.type} and {right.type}")
        return left, right

    def splat(self, value: Value, lanes: int) -> Value:
        """A vector that holds `value` in every lane."""
        if lanes == 1 or value.lanes == lanes:
            return value
        undefined = constants.undefined(constants.vector(value.type, lanes))
        first = self.ir.insert_element(undefined, value.ir, constants.number(I32, 0))
        everywhere = constants.number(constants.vector(I32, lanes), 0)
        return Value(self, self.ir.shuffle_vector(first, undefined, everywhere), value.signed)

    def shuffle(self, first: Value, second: Value | None, lanes: Sequence[int]) -> Value:
        """A vector of the chosen lanes of one or two vectors."""
        other = constants.undefined(first.type) if second is None else second.ir
        return Value(self, self.ir.shuffle_vector(first.ir, other, constants.positions(*lanes)), first.signed)

    def gathered(self, values: Sequence[Value]) -> Value:
        """A vector of single values."""
        vector = constants.undefined(ir.VectorType(values[0].type, len(values)))
        for number, value in enumerate(values):
            vector = self.ir.insert_element(vector, value.ir, constants.number(I32, number))
        return Value(self, vector, values[0].signed)

    def lane(self, vector: Value, number: int) -> Value:
        """One number of a vector."""
        return Value(self, self.ir.extract_element(vector.ir, constants.number(I32, number)), vector.signed)

    def convert(self, value: Value, element: ir.Type, signed: bool = True) -> Value:
        """`value` in another type of number. Floats become integers by cutting, saturating at the ends."""
        source = value.element
        if source == element:
            return Value(self, value.ir, signed)
        target = constants.vector(element, value.lanes)
        from_float, to_float = value.is_float, not isinstance(element, ir.IntType)
        if from_float and to_float:
            if ON_X86_64 and element == F16 and source == F64:
                return self.convert(self.convert(value, F32), F16)  # as PyTorch does there
            wider = _float_bits(element) > _float_bits(source)
            result = (self.ir.fpext if wider else self.ir.fptrunc)(value.ir, target)
        elif from_float:
            if element == BOOL:
                return value != 0.0
            kind = "fptosi" if signed else "fptoui"
            return self.intrinsic(f"llvm.{kind}.sat", target, [value], [target, value.type], signed)
        elif to_float:
            is_signed = value.signed and source != BOOL
            result = (self.ir.sitofp if is_signed else self.ir.uitofp)(value.ir, target)
        elif element == BOOL:
            return value != 0
        elif element.width < source.width:
            result = self.ir.trunc(value.ir, target)
        else:
            is_signed = value.signed and source != BOOL
            result = (self.ir.sext if is_signed else self.ir.zext)(value.ir, target)
        return Value(self, result, signed)

    def bits(self, value: Value, element: ir.Type) -> Value:
        """The bits of `value` read as another type of its width."""
        target = constants.vector(element, value.lanes)
        return Value(self, self.ir.bitcast(value.ir, target), True)

    def select(self, condition: Value, if_true: Operand, if_false: Operand) -> Value:
        """One of two values, lane by lane."""
        if isinstance(if_true, Value) or isinstance(if_false, Value):
            left, right = self.matched(if_true, if_false)
        else:
            raise TypeError("select needs a value: two numbers have no type")
        if left.lanes != condition.lanes:
            if condition.lanes == 1:
                condition = self.splat(condition, left.lanes)
            else:
                left, right = self.splat(left, condition.lanes), self.splat(right, condition.lanes)
        return Value(self, self.ir.select(condition.ir, left.ir, right.ir), left.signed)

    # Arithmetic that has no operator

    def intrinsic(
        self,
        name: str,
        returns: ir.Type,
        arguments: Sequence[Value],
        overloads: Sequence[ir.Type],
        signed: bool = True,
        flags: Sequence[str] = (),
    ) -> Value:
        """Call one of LLVM's intrinsics; its full name has the types that it is overloaded by."""
        full = ".".join([name, *(_mangled(each) for each in overloads)])
        function = self.external(full, returns, [argument.type for argument in arguments])
        called = self.ir.call(function, [argument.ir for argument in arguments], fastmath=flags)
        return Value(self, called, signed)

    def _math(self, name: str, first: Value, *others: Operand) -> Value:
        operands = [first, *(self.matched(first, other)[1] for other in others)]
        return self.intrinsic(f"llvm.{name}", first.type, operands, [first.type], first.signed)

    def fma(self, a: Value, b: Operand, c: Operand) -> Value:
        """`a * b + c`, rounded once."""
        a = self.splat(a, max(each.lanes for each in (a, b, c) if isinstance(each, Value)))
        return self._math("fma", a, b, c)

    def sqrt(self, value: Value) -> Value:
        return self._math("sqrt", value)

    def abs(self, value: Value) -> Value:
        if value.is_float:
            return self._math("fabs", value)
        return self.select(value < 0, -value, value) if value.signed else value

    def floor(self, value: Value) -> Value:
        return self._math("floor", value)

    def ceil(self, value: Value) -> Value:
        return self._math("ceil", value)

    def trunc(self, value: Value) -> Value:
        return self._math("trunc", value)

    def rint(self, value: Value) -> Value:
        """The nearest whole number, the even one of two."""
        return self._math("roundeven", value)

    def copysign(self, value: Value, sign: Operand) -> Value:
        signed = self._math("copysign", value, sign)
        if ON_X86_64 and value.element == F64:
            # Where the result is rounded to half precision LLVM would round the sign's operand too, by a routine of C
            # that no library of the process may have. It does not look through a fence.
            return self._math("arithmetic.fence", signed)
        return signed

    def larger(self, a: Value, b: Operand) -> Value:
        """The larger one of two integers, or of two floats of which neither is NaN."""
        left, right = self.matched(a, b)
        if left.is_float:
            return self._math("maxnum", left, right)
        return self._math("smax" if left.signed else "umax", left, right)

    def smaller(self, a: Value, b: Operand) -> Value:
        """The smaller one of two integers, or of two floats of which neither is NaN."""
        left, right = self.matched(a, b)
        if left.is_float:
            return self._math("minnum", left, right)
        return self._math("smin" if left.signed else "umin", left, right)

    def maximum(self, a: Value, b: Operand) -> Value:
        """The larger one of two floats; NaN if either is."""
        left, right = self.matched(a, b)
        return self._math("maximum", left, right) if left.is_float else self.larger(left, right)

    def minimum(self, a: Value, b: Operand) -> Value:
        """The smaller one of two floats; NaN if either is."""
        left, right = self.matched(a, b)
        return self._math("minimum", left, right) if left.is_float else self.smaller(left, right)

    def total(self, vector: Value) -> Value:
        """The sum of a vector's lanes, added in pairs."""
        return self.fold(vector, lambda a, b: a + b)

    def largest(self, vector: Value) -> Value:
        """The largest lane; NaN if there is one."""
        return self.fold(vector, self.maximum)

    def smallest(self, vector: Value) -> Value:
        """The smallest lane; NaN if there is one."""
        return self.fold(vector, self.minimum)

    def fold(self, vector: Value, combine: Callable[[Value, Value], Value]) -> Value:
        """The lanes of a vector combined in pairs."""
        while (lanes := vector.lanes) > 1:
            half = lanes // 2
            if half == 1:
                return combine(self.lane(vector, 0), self.lane(vector, 1))
            vector = combine(self.shuffle(vector, None, range(half)), self.shuffle(vector, None, range(half, lanes)))
        return vector

    # Memory

    def offset(self, pointer: Value, count: Operand, element: ir.Type = I8) -> Value:
        """The address `count` elements (bytes unless said otherwise) further on."""
        index = self.integer(count)
        return Value(self, self.ir.gep(pointer.ir, [index.ir], source_etype=element))

    def at(self, pointer: Value, scalar: Scalar, index: Operand) -> Value:
        """The address of an element."""
        return self.offset(pointer, index, scalar.memory)

    def opaque(self, value: Value) -> Value:
        """`value`, an address or integer, without what LLVM knows of how it was computed; not for inner loops.

        LLVM looks for the best way to count up the addresses of a loop. Where it sees sums of many products in them,
        this is most of the time that it takes for a kernel; and where it sees multiples of one step, it would rather
        add that step from one to the next than keep them.
        """
        name = "opaque" if value.type == POINTER else f"opaque_{value.type}"
        if name not in self.module.globals:
            inner = self.subroutine(name, value.type, [value.type])
            inner.give_back(inner.arguments[0])
        return self.call(name, value.type, [value])

    def load_raw(self, pointer: Value, type_: ir.Type, align: int | None = None) -> Value:
        """What stands at an address."""
        return Value(self, self.ir.load(pointer.ir, typ=type_, align=align))

    def store_raw(self, value: Operand, pointer: Value, type_: ir.Type | None = None, align: int | None = None) -> None:
        """Write to an address; a number needs its type."""
        if type_ is not None:
            value = self.constant(type_, value)
        assert isinstance(value, Value)
        self.ir.store(value.ir, pointer.ir, align=align)

    def load(self, pointer: Value, scalar: Scalar, index: Operand = 0, lanes: int = 1) -> Value:
        """`lanes` neighbouring elements of an array, in the type in which they are computed with."""
        place = self.at(pointer, scalar, index)
        raw = self.load_raw(place, constants.vector(scalar.memory, lanes), scalar.size)
        raw.signed = scalar.is_signed
        return self.unpacked(raw, scalar)

    def load_spaced(self, pointer: Value, scalar: Scalar, index: Value, step: Value, lanes: int) -> Value:
        """`load` of elements that are `step` bytes apart, from the one at `index` on: neighbours, one, or any."""
        first = pointer + index * step
        if lanes == 1:
            return self.load(first, scalar)
        raw = self.variable(scalar.memory, None, lanes, scalar.is_signed)
        with self.either(step == scalar.size) as (neighbours, apart):
            with neighbours:
                raw.value = self.load_raw(first, constants.vector(scalar.memory, lanes), scalar.size)
            with apart, self.either(step == 0) as (one, any_):
                with one:
                    raw.value = self.splat(self.load_raw(first, scalar.memory, scalar.size), lanes)
                with any_:
                    places = [first + lane * step for lane in range(lanes)]
                    raw.value = self.gathered([self.load_raw(each, scalar.memory, scalar.size) for each in places])
        return self.unpacked(raw.value, scalar)

    def prefetch(self, pointer: Value) -> None:
        """Fetch what stands at an address into the cache; it may be any address."""
        read, keep, data = (constants.number(I32, number) for number in (0, 3, 1))
        function = self.external("llvm.prefetch.p0", VOID, [POINTER, I32, I32, I32])
        self.ir.call(function, [pointer.ir, read, keep, data])

    def store(self, pointer: Value, scalar: Scalar, index: Operand, value: Operand) -> None:
        """Write one element or, of a vector, neighbouring ones."""
        value = self.constant(scalar.compute, value)
        self.store_raw(self.packed(value, scalar), self.at(pointer, scalar, index), None, scalar.size)

    def store_spaced(self, pointer: Value, scalar: Scalar, index: Value, step: Value, value: Value) -> None:
        """`store` of the numbers of a vector `step` bytes apart, the first at `index`."""
        first, packed = pointer + index * step, self.packed(value, scalar)
        if value.lanes == 1:
            self.store_raw(packed, first, None, scalar.size)
            return
        with self.either(step == scalar.size) as (neighbours, apart):
            with neighbours:
                self.store_raw(packed, first, None, scalar.size)
            with apart:
                for lane in range(value.lanes):
                    self.store_raw(self.lane(packed, lane), first + lane * step, None, scalar.size)

    def unpacked(self, raw: Value, scalar: Scalar) -> Value:
        """From the form in memory to the one in registers."""
        if scalar is types.bfloat16:
            raw.signed = False
            return self.bits(self.convert(raw, I32, False) << 16, F32)
        if scalar is types.bool_:
            return raw != 0
        return raw if scalar.memory == scalar.compute else self.convert(raw, scalar.compute)

    def packed(self, value: Value, scalar: Scalar) -> Value:
        """From the form in registers to the one in memory, rounded to the nearest, ties to even."""
        if value.element == F64 and scalar.size == 2:
            value = self.convert(value, F32)  # rounded twice, as in PyTorch
        if scalar is types.bfloat16:
            word = self.bits(value, I32)
            word.signed = False
            rounded = word + 0x7FFF + ((word >> 16) & 1)
            nan = (word & 0x7FFFFFFF) > 0x7F800000
            return self.convert(self.select(nan, (word | 0x400000) >> 16, rounded >> 16), I16, False)
        if scalar is types.bool_:
            return self.convert(value, I8, False)
        return value if scalar.memory == value.element else self.convert(value, scalar.memory, scalar.is_signed)

    def stack(self, element: ir.Type, count: int, align: int = 16) -> Value:
        """Room for `count` elements on the stack of the function."""
        place = self.room(ir.ArrayType(element, count))
        place.align = align
        return Value(self, place)

    def room(self, type_: ir.Type) -> Any:
        """A place on the stack for one value, kept until the function returns."""
        with self.ir.goto_entry_block():
            place = self.ir.alloca(type_)
        place.type = POINTER  # llvmlite would remember what it points to, and insist on it
        return place

    def variable(self, type_: ir.Type, initial: Operand | None = None, lanes: int = 1, signed: bool = True) -> Variable:
        """A variable of `type_`, or a vector of them."""
        return Variable(self, constants.vector(type_, lanes), initial, signed)

    # Control

    @contextmanager
    def loop(self, begin: Operand, end: Operand, step: Operand = 1) -> Iterator[Value]:
        """Repeat the body for begin, begin + step, ... below `end`."""
        begin, end, step = self.integer(begin), self.integer(end), self.integer(step)
        build = self.ir
        before = build.block
        body, after = build.append_basic_block("body"), build.append_basic_block("after")
        build.cbranch(build.icmp_signed("<", begin.ir, end.ir), body, after)
        build.position_at_end(body)
        index = build.phi(I64)
        index.add_incoming(begin.ir, before)
        yield Value(self, index)
        following = build.add(index, step.ir, flags=("nsw",))
        index.add_incoming(following, build.block)
        build.cbranch(build.icmp_signed("<", following, end.ir), body, after)
        build.position_at_end(after)

    def lanes(self, begin: Operand, end: Operand, *widths: int) -> Iterator[tuple[Value, int]]:
        """Loops over a range: in steps of the first width, over what is left in steps of the next one, and so on to 1.

        To be used in a `for` statement, whose body is written once for each: it gets the position and the width.
        """
        begin, end = self.integer(begin), self.integer(end)
        for width in widths:
            if width > 1:
                whole = begin + (end - begin) // width * width
                with self.loop(begin, whole, width) as position:
                    yield position, width
                begin = whole
        with self.loop(begin, end) as position:
            yield position, 1

    @contextmanager
    def repeat_while(self) -> Iterator[Callable[[Value], None]]:
        """Repeat the body; it says once, by calling what it is given, on what condition to go on from there."""
        build = self.ir
        body, after = build.append_basic_block("repeat"), build.append_basic_block("done")
        build.branch(body)
        build.position_at_end(body)

        def go_on_if(condition: Value) -> None:
            further = build.append_basic_block("further")
            build.cbranch(condition.ir, further, after)
            build.position_at_end(further)

        yield go_on_if
        build.branch(body)
        build.position_at_end(after)

    @contextmanager
    def when(self, condition: Value, likely: bool | None = None) -> Iterator[None]:
        """The body runs if the condition holds."""
        with self.ir.if_then(condition.ir, likely=likely):
            yield

    @contextmanager
    def either(self, condition: Value) -> Iterator[tuple[Any, Any]]:
        """Two bodies, `with` each of the two contexts: the first runs if the condition holds, else the second."""
        with self.ir.if_else(condition.ir) as (first, second):
            yield first, second

    def give_back(self, value: Operand | None = None) -> None:
        """Return from the function."""
        if value is None:
            self.ir.ret_void()
        else:
            self.ir.ret(self.constant(self.function.function_type.return_type, value).ir)

    # Functions

    def external(self, name: str, returns: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
        """A function that stands elsewhere."""
        return _function(self.module, name, returns, arguments)

    def call(self, name: str, returns: ir.Type, arguments: Sequence[Value]) -> Value:
        """Call a function by name: another one of this module, of the C library, of Python or of the thread pool."""
        function = self.external(name, returns, [argument.type for argument in arguments])
        return Value(self, self.ir.call(function, [argument.ir for argument in arguments]))

    def subroutine(self, name: str, returns: ir.Type, arguments: Sequence[ir.Type]) -> Builder:
        """A builder for another function of the same module, to be called by its name."""
        other = Builder(self.module, name, returns, arguments)
        other.function.linkage = "internal"
        return other

    @contextmanager
    def parallel(
        self, count: Operand, grain: Operand, *captured: Value, unlock: bool = False
    ) -> Iterator[tuple[Builder, Value, Value, list[Value]]]:
        """Divide `count` steps among the threads, at least `grain` at a time (`shares.py`); fewer than twice as many
        are not divided.

        The body is a function of its own: it gets its builder, the first and the last step (exclusive) of a share, and
        the values that were captured. Shares run in any order, at the same time. With `unlock` other Python threads
        may run meanwhile, unless it is one share only: the body must not touch Python's objects.
        """
        record = ir.LiteralStructType([value.type for value in captured] or [I64])
        place = self.room(record)
        for number, value in enumerate(captured):
            self.ir.store(value.ir, self._field(self.ir, place, record, number))
        self.parallel_functions += 1
        inner = self.subroutine(f"{self.function.name}.share{self.parallel_functions}", VOID, [POINTER, I64, I64])
        context, begin, end = inner.arguments
        inside = [
            Value(inner, inner.ir.load(self._field(inner.ir, context.ir, record, number), typ=value.type), value.signed)
            for number, value in enumerate(captured)
        ]
        yield inner, begin, end, inside
        inner.give_back()
        body, count, grain = Value(self, inner.function), self.integer(count), self.integer(grain)
        with self.either(count < grain * 2) as (small, large):
            with small:
                self.ir.call(inner.function, [place, constants.number(I64, 0), count.ir])
            with large:
                state = self.call("PyEval_SaveThread", POINTER, []) if unlock else None
                self.call("flambeau_parallel", VOID, [body, Value(self, place), count, grain])
                if state is not None:
                    self.call("PyEval_RestoreThread", VOID, [state])

    @staticmethod
    def _field(build: ir.IRBuilder, place: ir.Value, record: ir.Type, number: int) -> ir.Value:
        indices = [constants.number(I32, 0), constants.number(I32, number)]
        return build.gep(place, indices, inbounds=True, source_etype=record)


def _function(module: ir.Module, name: str, returns: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
    found = module.globals.get(name)
    if found is None:
        found = ir.Function(module, ir.FunctionType(returns, list(arguments)), name)
    return found


def _float_bits(type_: ir.Type) -> int:
    return 16 if isinstance(type_, ir.HalfType) else 32 if isinstance(type_, ir.FloatType) else 64


def _mangled(type_: ir.Type) -> str:
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{_mangled(type_.element)}"
    if isinstance(type_, ir.IntType):
        return f"i{type_.width}"
    return "p0" if type_ == POINTER else f"f{_float_bits(type_)}"
