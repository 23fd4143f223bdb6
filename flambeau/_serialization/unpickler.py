"""A pickle machine that builds data and runs no code from the file.

It follows the opcodes as `pickletools` describes them. Whatever the file names is looked up in a table of known globals
(`globals.py`), to which the user may add. A name outside it, a call of anything else, or an operation on an object of
another type than the opcode is meant for ends the load with an error that says which.
"""

from __future__ import annotations

import pickle
import pickletools
import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from .limits import Budget, check_hashable

_OPCODES = {info.code: info for info in pickletools.opcodes}

_LENGTH_FORMATS = {
    pickletools.TAKEN_FROM_ARGUMENT1: "<B",
    pickletools.TAKEN_FROM_ARGUMENT4: "<i",
    pickletools.TAKEN_FROM_ARGUMENT4U: "<I",
    pickletools.TAKEN_FROM_ARGUMENT8U: "<Q",
}
_TWO_LINES = -100
"""The kind of argument of opcodes that name a module on one line and something in it on the next."""
_DICTS = (dict, OrderedDict, Counter, defaultdict)


class Globals(Protocol):
    """What a file may refer to."""

    def find(self, module: str, name: str) -> Any:
        """The object that a file's GLOBAL means; an error if it is not allowed."""

    def call(self, function: Any, arguments: tuple[Any, ...], budget: Budget) -> Any:
        """The result of an allowed call."""

    def create(self, cls: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], budget: Budget) -> Any:
        """A new object of an allowed class, made as `copyreg.__newobj__` does."""

    def build(self, target: Any, state: Any, budget: Budget) -> None:
        """Give an object of an allowed class its pickled state."""

    def allows_instance(self, target: Any) -> bool:
        """Whether the user allowed the class of `target`, and with it its methods."""


class UserCodeError(Exception):
    """Carries an error of code that the user allowed, past the machine's own handling of errors."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Machine:
    """Executes one pickle after another from a buffer."""

    def __init__(
        self,
        data: Any,
        known: Globals,
        persistent_load: Callable[[Any], Any] | None = None,
        *,
        position: int = 0,
        encoding: str = "utf-8",
        budget: Budget | None = None,
    ) -> None:
        self.data = data
        self.size = len(data)
        self.position = position
        self.known = known
        self.persistent_load = persistent_load
        self.encoding = encoding
        self.budget = Budget.for_input(self.size) if budget is None else budget

    def load(self) -> Any:
        """The object of the next pickle; afterwards `position` is behind it."""
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        start = self.position
        code = _STOP
        try:
            while True:
                start = self.position
                if start >= self.size:
                    raise EOFError("Ran out of input")
                code = self.data[start]
                self.position = start + 1
                operation = _OPERATIONS[code]
                if operation is None:
                    self._unsupported(code)
                size, handler = operation
                if size == 0:
                    handler(self)
                else:
                    handler(self, self._fixed(size) if size > 0 else self._argument(size))
                if code == _STOP:
                    return self.stack.pop()
        except UserCodeError as carried:
            raise carried.error from None
        except (pickle.UnpicklingError, EOFError, RuntimeError):
            raise
        except Exception as error:
            raise pickle.UnpicklingError(
                f"pickle data is corrupt: opcode {_name(code)} at byte {start} cannot be executed "
                f"({type(error).__name__}: {str(error)[:200]})"
            ) from error

    # ----- arguments ------------------------------------------------------------------------------------------------

    def _fixed(self, size: int) -> bytes:
        begin = self.position
        end = begin + size
        if end > self.size:
            raise pickle.UnpicklingError("pickle data was truncated")
        self.position = end
        taken: bytes = self.data[begin:end]
        return taken

    def _argument(self, kind: int) -> bytes:
        if kind == pickletools.UP_TO_NEWLINE:
            end = self.data.find(b"\n", self.position)
            if end < 0:
                raise pickle.UnpicklingError("pickle data was truncated")
            line: bytes = self.data[self.position : end]
            self.position = end + 1
            return line
        if kind == _TWO_LINES:
            first = self._argument(pickletools.UP_TO_NEWLINE)
            return first + b"\n" + self._argument(pickletools.UP_TO_NEWLINE)
        layout = _LENGTH_FORMATS[kind]
        (length,) = struct.unpack(layout, self._fixed(struct.calcsize(layout)))
        if length < 0:
            raise pickle.UnpicklingError("pickle data is corrupt: a negative length")
        return self._fixed(length)

    def _unsupported(self, code: int) -> NoReturn:
        from pickletools import opcodes

        is_known = any(each.code == chr(code) for each in opcodes)
        known = "that can be loaded safely" if is_known else "of pickles: the data is corrupt, or no pickle"
        raise pickle.UnpicklingError(
            f"Unsupported operand {code}: the byte {chr(code)!r} at position {self.position - 1} is no opcode {known}"
        )

    def _from_mark(self) -> list[Any]:
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def _text(self, raw: bytes) -> Any:
        return raw if self.encoding == "bytes" else raw.decode(self.encoding)

    # ----- numbers, strings, constants ------------------------------------------------------------------------------

    def op_PROTO(self, raw: bytes) -> None:
        if raw[0] > pickle.HIGHEST_PROTOCOL:
            raise pickle.UnpicklingError(f"unsupported pickle protocol: {raw[0]}")

    def op_FRAME(self, raw: bytes) -> None:
        pass  # says how much to read ahead, which this machine need not know

    def op_STOP(self) -> None:
        if self.marks:
            raise pickle.UnpicklingError("pickle data is corrupt: it ends inside an object")

    def op_NONE(self) -> None:
        self.stack.append(None)

    def op_NEWTRUE(self) -> None:
        self.stack.append(True)

    def op_NEWFALSE(self) -> None:
        self.stack.append(False)

    def op_INT(self, raw: bytes) -> None:
        self.stack.append({b"00": False, b"01": True}[raw] if raw in (b"00", b"01") else int(raw))

    def op_BININT(self, raw: bytes) -> None:
        self.stack.append(int.from_bytes(raw, "little", signed=True))

    def op_BININT1(self, raw: bytes) -> None:
        self.stack.append(raw[0])

    def op_BININT2(self, raw: bytes) -> None:
        self.stack.append(int.from_bytes(raw, "little"))

    def op_LONG(self, raw: bytes) -> None:
        self.stack.append(int(raw.removesuffix(b"L")))

    op_LONG1 = op_LONG4 = op_BININT

    def op_FLOAT(self, raw: bytes) -> None:
        self.stack.append(float(raw))

    def op_BINFLOAT(self, raw: bytes) -> None:
        self.stack.append(struct.unpack(">d", raw)[0])

    def op_STRING(self, raw: bytes) -> None:
        if len(raw) < 2 or raw[:1] != raw[-1:] or raw[:1] not in (b'"', b"'"):
            raise pickle.UnpicklingError("the STRING opcode argument must be quoted")
        self.stack.append(self._text(raw[1:-1].decode("unicode_escape").encode("latin1")))

    def op_BINSTRING(self, raw: bytes) -> None:
        self.stack.append(self._text(raw))

    op_SHORT_BINSTRING = op_BINSTRING

    def op_BINBYTES(self, raw: bytes) -> None:
        self.stack.append(raw)

    op_SHORT_BINBYTES = op_BINBYTES8 = op_BINBYTES

    def op_BYTEARRAY8(self, raw: bytes) -> None:
        self.stack.append(bytearray(raw))

    def op_UNICODE(self, raw: bytes) -> None:
        self.stack.append(raw.decode("raw-unicode-escape"))

    def op_BINUNICODE(self, raw: bytes) -> None:
        self.stack.append(raw.decode("utf-8", "surrogatepass"))

    op_SHORT_BINUNICODE = op_BINUNICODE8 = op_BINUNICODE

    # ----- containers -----------------------------------------------------------------------------------------------

    def op_EMPTY_LIST(self) -> None:
        self.stack.append([])

    def op_LIST(self) -> None:
        items = self._from_mark()
        self.stack.append(items)

    def op_APPEND(self) -> None:
        item = self.stack.pop()
        self._extend([item])

    def op_APPENDS(self) -> None:
        self._extend(self._from_mark())

    def _extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is list:
            target.extend(items)
        elif self.known.allows_instance(target):
            call_user_code(target.extend, items)
        else:
            raise pickle.UnpicklingError(f"Can only append to lists, but got {type(target).__name__}")

    def op_EMPTY_TUPLE(self) -> None:
        self.stack.append(())

    def op_TUPLE(self) -> None:
        items = self._from_mark()
        self.stack.append(tuple(items))

    def op_TUPLE1(self) -> None:
        self.stack[-1:] = [(self.stack[-1],)]

    def op_TUPLE2(self) -> None:
        first, second = self.stack[-2:]
        self.stack[-2:] = [(first, second)]

    def op_TUPLE3(self) -> None:
        first, second, third = self.stack[-3:]
        self.stack[-3:] = [(first, second, third)]

    def op_EMPTY_DICT(self) -> None:
        self.stack.append({})

    def op_DICT(self) -> None:
        items = self._from_mark()
        self.stack.append({})
        self._update(items)

    def op_SETITEM(self) -> None:
        value = self.stack.pop()
        key = self.stack.pop()
        self._update([key, value])

    def op_SETITEMS(self) -> None:
        self._update(self._from_mark())

    def _update(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if len(items) % 2:
            raise pickle.UnpicklingError("odd number of items for a dict")
        pairs = zip(items[::2], items[1::2], strict=True)
        if type(target) in _DICTS:
            for key, value in pairs:
                if type(key) is not str:
                    check_hashable(key)
                target[key] = value
        elif self.known.allows_instance(target):
            for key, value in pairs:
                call_user_code(target.__setitem__, key, value)
        else:
            raise pickle.UnpicklingError(
                f"Can only set items of dictionaries, but got {type(target).__name__}: the file is corrupt or malicious"
            )

    def op_EMPTY_SET(self) -> None:
        self.stack.append(set())

    def op_ADDITEMS(self) -> None:
        items = self._from_mark()
        target = self.stack[-1]
        if type(target) is not set:
            raise pickle.UnpicklingError(f"Can only add items to sets, but got {type(target).__name__}")
        for item in items:
            check_hashable(item)
        target.update(items)

    def op_FROZENSET(self) -> None:
        items = self._from_mark()
        for item in items:
            check_hashable(item)
        self.stack.append(frozenset(items))

    # ----- the stack and the memo -----------------------------------------------------------------------------------

    def op_MARK(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def op_POP(self) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self._from_mark()

    def op_POP_MARK(self) -> None:
        self._from_mark()

    def op_DUP(self) -> None:
        self.stack.append(self.stack[-1])

    def op_GET(self, raw: bytes) -> None:
        self.stack.append(self.memo[int(raw)])

    def op_BINGET(self, raw: bytes) -> None:
        self.stack.append(self.memo[int.from_bytes(raw, "little")])

    op_LONG_BINGET = op_BINGET

    def op_PUT(self, raw: bytes) -> None:
        self.memo[int(raw)] = self.stack[-1]

    def op_BINPUT(self, raw: bytes) -> None:
        self.memo[int.from_bytes(raw, "little")] = self.stack[-1]

    op_LONG_BINPUT = op_BINPUT

    def op_MEMOIZE(self) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    # ----- names and objects ----------------------------------------------------------------------------------------

    def op_GLOBAL(self, raw: bytes) -> None:
        module, _, name = raw.partition(b"\n")
        self.stack.append(self.known.find(module.decode(), name.decode()))

    def op_STACK_GLOBAL(self) -> None:
        name = self.stack.pop()
        module = self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise pickle.UnpicklingError("STACK_GLOBAL requires str")
        self.stack.append(self.known.find(module, name))

    def op_REDUCE(self) -> None:
        arguments = self.stack.pop()
        function = self.stack.pop()
        self.stack.append(self.known.call(function, _tuple(arguments), self.budget))

    def op_NEWOBJ(self) -> None:
        arguments = self.stack.pop()
        cls = self.stack.pop()
        self.stack.append(self.known.create(cls, _tuple(arguments), {}, self.budget))

    def op_NEWOBJ_EX(self) -> None:
        keywords = self.stack.pop()
        arguments = self.stack.pop()
        cls = self.stack.pop()
        if type(keywords) is not dict:
            raise pickle.UnpicklingError("NEWOBJ_EX keywords argument must be a dict")
        self.stack.append(self.known.create(cls, _tuple(arguments), keywords, self.budget))

    def op_INST(self, raw: bytes) -> None:
        module, _, name = raw.partition(b"\n")
        arguments = self._from_mark()
        self._instantiate(self.known.find(module.decode(), name.decode()), arguments)

    def op_OBJ(self) -> None:
        items = self._from_mark()
        self._instantiate(items[0], items[1:])

    def _instantiate(self, cls: Any, arguments: list[Any]) -> None:
        if arguments:
            self.stack.append(self.known.call(cls, tuple(arguments), self.budget))
        else:  # protocol 0 makes an instance of a class without arguments without its __init__
            self.stack.append(self.known.create(cls, (), {}, self.budget))

    def op_BUILD(self) -> None:
        state = self.stack.pop()
        self.known.build(self.stack[-1], state, self.budget)

    def op_PERSID(self, raw: bytes) -> None:
        self.stack.append(self._persistent(raw.decode("ascii")))

    def op_BINPERSID(self) -> None:
        self.stack.append(self._persistent(self.stack.pop()))

    def _persistent(self, saved_id: Any) -> Any:
        if self.persistent_load is None:
            raise pickle.UnpicklingError("a persistent id where none can be: the file is corrupt")
        return call_user_code(self.persistent_load, saved_id)  # the user's map_location may raise anything


def _tuple(arguments: Any) -> tuple[Any, ...]:
    if type(arguments) is not tuple:
        raise pickle.UnpicklingError(f"the arguments of a call must be a tuple, not {type(arguments).__name__}")
    return arguments


def call_user_code(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call code that the user allowed; its errors are the user's to see."""
    try:
        return function(*arguments, **keywords)
    except Exception as error:
        raise UserCodeError(error) from error


def _name(code: int) -> str:
    info = _OPCODES.get(chr(code))
    return repr(chr(code)) if info is None else info.name


def _operation(code: int) -> tuple[int, Callable[..., None]] | None:
    """The size or kind of the argument of an opcode, and the method that executes it."""
    info = _OPCODES.get(chr(code))
    handler = None if info is None else getattr(Machine, f"op_{info.name}", None)
    if info is None or handler is None:
        return None
    if info.arg is None:
        return 0, handler
    return (_TWO_LINES if info.arg is pickletools.stringnl_noescape_pair else info.arg.n), handler


_OPERATIONS = [_operation(code) for code in range(256)]
_STOP = ord(".")
