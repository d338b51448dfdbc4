"""A recursive-descent parser for OpenQASM 2."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from sciax.core.errors import MissingFileError, SciaxError, did_you_mean
from sciax.quantum._circuit import Circuit, GateList
from sciax.quantum._order import check_order
from sciax.quantum.qasm._lexer import QasmError, Token, tokenize
from sciax.quantum.qasm._library import BUILTIN, GATES

Value = Callable[[dict[str, float]], float]
_FUNCTIONS = {"sin": math.sin, "cos": math.cos, "tan": math.tan, "exp": math.exp, "ln": math.log, "sqrt": math.sqrt}
_MAX_DEPTH = 200


@dataclass
class _Call:
    token: Token
    name: str
    angles: list[Value]
    qubits: list[str]


@dataclass
class _Definition:
    parameters: list[str]
    qubits: list[str]
    body: list[_Call] = field(default_factory=list)
    opaque: bool = False


@dataclass
class _Register:
    kind: str
    start: int
    size: int


def from_qasm(text: str, *, folder: str | Path | None = None, source: str = "", order: str = "little") -> Circuit:
    """A circuit from an OpenQASM 2 program.

    Registers follow each other in order of declaration: the first qubit of the first qreg is qubit 0, the least significant.

    Args:
        folder: where included files lie; without it only "qelib1.inc" (built in, the extended one) can be included.
        source: a name for error messages.
        order: "big" makes the program's first qubit the most significant instead.

    Raises:
        QasmError: with line and column of what is wrong; InputError: an unknown order.
    """
    check_order(order)
    circuit = _Parser(Path(folder) if folder is not None else None).program(text, source)
    return circuit.remap(range(circuit.num_qubits)[::-1]) if order == "big" else circuit


def read_qasm(path: str | Path, *, order: str = "little") -> Circuit:
    """A circuit from an OpenQASM 2 file; included files are looked for beside it. `order` as in `from_qasm`.

    Raises:
        MissingFileError: no such file; QasmError: as `from_qasm`.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFileError(f"no OpenQASM file {str(path)!r}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise QasmError("the file is not text", 1, 1, path.name) from error
    return from_qasm(text, folder=path.parent, source=path.name, order=order)


class _Parser:
    def __init__(self, folder: Path | None):
        self.folder = folder
        self.registers: dict[str, _Register] = {}
        self.definitions: dict[str, _Definition] = {}
        self.library: dict[str, tuple] = dict(BUILTIN)
        self.statements: list[Callable[[GateList], object]] = []
        self.qubits = self.bits = 0
        self.included: list[str] = []

    # -- tokens

    def _open(self, text: str, source: str) -> None:
        self.tokens, self.at, self.source = tokenize(text, source), 0, source

    @property
    def peek(self) -> Token:
        return self.tokens[self.at]

    def next(self, *kinds: str) -> Token:
        token = self.tokens[self.at]
        if kinds and token.kind not in kinds:
            wanted = " or ".join(
                {"id": "a name", "int": "an integer", "string": "a string"}.get(k, repr(k)) for k in kinds
            )
            found = "the end of the file" if token.kind == "end" else repr(token.text)
            raise self.error(token, f"expected {wanted}, found {found}")
        self.at += 1
        return token

    def take(self, kind: str) -> bool:
        if self.peek.kind == kind:
            self.at += 1
            return True
        return False

    def error(self, token: Token, message: str, **details) -> QasmError:
        return QasmError(message, token.line, token.column, self.source, **details)

    # -- statements

    def program(self, text: str, source: str) -> Circuit:
        self._open(text, source)
        head = self.peek
        if head.kind != "OPENQASM":
            raise self.error(head, "an OpenQASM 2 program starts with 'OPENQASM 2.0;'")
        self.next("OPENQASM")
        version = self.next("real", "int")
        if float(version.text) != 2.0:
            raise self.error(version, f"OpenQASM {version.text} is not supported", expected="2.0")
        self.next(";")
        self._statements()
        gates = GateList(self.qubits, self.bits)
        for statement in self.statements:
            statement(gates)
        return gates.circuit()

    def _statements(self) -> None:
        while self.peek.kind != "end":
            token = self.next()
            if token.kind == "include":
                self._include()
            elif token.kind in ("qreg", "creg"):
                self._register(token.kind)
            elif token.kind in ("gate", "opaque"):
                self._definition(token.kind == "opaque")
            elif token.kind == "if":
                self._if(token)
            elif token.kind == "barrier":
                args = self._arguments()
                wires = tuple(dict.fromkeys(q for a in args for q in self._indices(a, "qreg")))
                self.next(";")
                self.statements.append(lambda c, wires=wires: c.barrier(*wires) if wires else None)
            else:
                self.statements.extend(self._operation(token))

    def _include(self) -> None:
        token = self.next("string")
        self.next(";")
        name = token.text[1:-1]
        if name == "qelib1.inc":
            self.library.update(GATES)
            return
        if self.folder is None:
            raise self.error(token, f"cannot include {name!r}", remedy="from_qasm(text, folder=...) or read_qasm(path)")
        # A program is data from outside: it may name files beside it, and no others.
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise self.error(token, f"included file {name!r} is outside the program's folder")
        if name in self.included or len(self.included) > 50:
            raise self.error(token, f"{name!r} includes itself")
        path = self.folder / name
        if not path.is_file():
            raise self.error(token, f"no included file {name!r}")
        outer = self.tokens, self.at, self.source
        self.included.append(name)
        self._open(path.read_text(), name)
        if self.take("OPENQASM"):  # allowed, though not asked for, in included files
            self.next("real", "int")
            self.next(";")
        self._statements()
        self.included.pop()
        self.tokens, self.at, self.source = outer

    def _register(self, kind: str) -> None:
        token = self.next("id")
        self.next("[")
        size = self.next("int")
        self.next("]")
        self.next(";")
        if token.text in self.registers:
            raise self.error(token, f"register {token.text!r} is declared twice")
        if int(size.text) < 1:
            raise self.error(size, f"register {token.text!r} needs at least one element")
        if kind == "qreg":
            self.registers[token.text] = _Register(kind, self.qubits, int(size.text))
            self.qubits += int(size.text)
        else:
            self.registers[token.text] = _Register(kind, self.bits, int(size.text))
            self.bits += int(size.text)
        if self.qubits > 4096:
            raise self.error(size, "too many qubits", got=self.qubits, expected="at most 4096")

    def _definition(self, opaque: bool) -> None:
        token = self.next("id", "U", "CX")
        if token.kind != "id":
            raise self.error(token, f"{token.text!r} is built in and cannot be defined")
        if token.text in self.definitions:
            raise self.error(token, f"gate {token.text!r} is defined twice")
        parameters, qubits = [], []
        if self.take("(") and not self.take(")"):
            parameters = self._names()
            self.next(")")
        qubits = self._names()
        for name in parameters + qubits:
            if (parameters + qubits).count(name) > 1:
                raise self.error(token, f"gate {token.text!r}: the name {name!r} is used twice")
        definition = _Definition(parameters, qubits, opaque=opaque)
        if opaque:
            self.next(";")
        else:
            self.next("{")
            while not self.take("}"):
                if self.take("barrier"):
                    for name in self._names():
                        self._local(token, name, qubits)
                    self.next(";")
                    continue
                definition.body.append(self._call(definition))
        # registered last: a gate cannot call itself
        self.definitions[token.text] = definition

    def _names(self) -> list[str]:
        names = [self.next("id").text]
        while self.take(","):
            names.append(self.next("id").text)
        return names

    def _local(self, token: Token, name: str, qubits: list[str]) -> None:
        if name not in qubits:
            raise self.error(token, f"no qubit argument {name!r}", remedy=did_you_mean(name, qubits))

    def _call(self, definition: _Definition) -> _Call:
        token = self.next("id", "U", "CX")
        count, width = self._signature(token)
        angles = self._angles(definition.parameters)
        first = self.peek
        qubits = self._names()
        self.next(";")
        for name in qubits:
            self._local(first, name, definition.qubits)
        self._fit(token, len(angles), count, len(qubits), width)
        if len(set(qubits)) != len(qubits):
            raise self.error(first, f"gate {token.text!r}: a qubit is used twice")
        return _Call(token, token.text, angles, qubits)

    def _signature(self, token: Token) -> tuple[int, int]:
        if token.text in self.definitions:
            definition = self.definitions[token.text]
            return len(definition.parameters), len(definition.qubits)
        if token.text in self.library:
            return self.library[token.text][:2]
        if token.text in GATES:
            raise self.error(token, f"gate {token.text!r} is not defined", remedy='include "qelib1.inc";')
        raise self.error(
            token,
            f"gate {token.text!r} is not defined",
            remedy=did_you_mean(token.text, [*self.definitions, *self.library]),
        )

    def _fit(self, token: Token, angles: int, count: int, qubits: int, width: int) -> None:
        if angles != count:
            raise self.error(token, f"gate {token.text!r}: wrong number of parameters", got=angles, expected=count)
        if qubits != width:
            raise self.error(token, f"gate {token.text!r}: wrong number of qubits", got=qubits, expected=width)

    def _if(self, token: Token) -> None:
        self.next("(")
        name = self.next("id")
        self.next("==")
        value = int(self.next("int").text)
        self.next(")")
        register = self._find(name, "creg")
        body = self._operation(self.next())
        if value >= 1 << register.size:  # allowed by the language, and never true
            return
        condition = (tuple(range(register.start, register.start + register.size)), value)

        def emit(c: GateList) -> None:
            inner = GateList(c.num_qubits, c.num_bits)
            inner.values = c.values
            for statement in body:
                statement(inner)
            c.ops.extend(replace(g, condition=condition) for g in inner.ops)

        self.statements.append(emit)

    def _operation(self, token: Token) -> list[Callable[[GateList], object]]:
        if token.kind == "measure":
            source = self._argument()
            self.next("->")
            target = self._argument()
            self.next(";")
            qubits, bits = self._indices(source, "qreg"), self._indices(target, "creg")
            if len(qubits) != len(bits):
                raise self.error(token, "measure: registers of different size", got=f"{len(qubits)} -> {len(bits)}")
            return [lambda c: c.measure(qubits, bits)]
        if token.kind == "reset":
            wires = self._indices(self._argument(), "qreg")
            self.next(";")
            return [lambda c, q=q: c.reset(q) for q in wires]
        if token.kind not in ("id", "U", "CX"):
            found = "the end of the file" if token.kind == "end" else repr(token.text)
            raise self.error(token, f"expected a statement, found {found}")
        count, width = self._signature(token)
        angles = [self._number(a, token) for a in self._angles([])]
        arguments = self._arguments()
        self.next(";")
        self._fit(token, len(angles), count, len(arguments), width)
        wires = [self._indices(a, "qreg") for a in arguments]
        whole = [len(w) for w, a in zip(wires, arguments) if a[1] is None]
        if len(set(whole)) > 1:
            raise self.error(token, f"gate {token.text!r}: registers of different size", got=whole)
        # whole registers broadcast together with single qubits
        runs = max(whole, default=1)
        calls = [[w[k] if a[1] is None else w[0] for w, a in zip(wires, arguments)] for k in range(runs)]
        for qubits in calls:
            if len(set(qubits)) != len(qubits):
                raise self.error(token, f"gate {token.text!r}: a qubit is used twice")
        return [lambda c, q=q: self._emit(c, token, token.text, angles, q, 0) for q in calls]

    def _emit(self, c: GateList, token: Token, name: str, angles: list[float], qubits: list[int], depth: int) -> None:
        if name in self.definitions:
            definition = self.definitions[name]
            if definition.opaque:
                raise self.error(token, f"gate {name!r} is opaque: it has no definition to simulate")
            if depth > _MAX_DEPTH:
                raise self.error(token, f"gate {name!r}: definitions nested too deeply")
            scope = dict(zip(definition.parameters, angles))
            place = dict(zip(definition.qubits, qubits))
            for call in definition.body:
                values = [self._number(a, call.token, scope) for a in call.angles]
                self._emit(c, call.token, call.name, values, [place[q] for q in call.qubits], depth + 1)
            return
        try:
            self.library[name][2](c, angles, qubits)
        except SciaxError as error:
            raise self.error(token, error.message, got=error.got) from error

    # -- arguments

    def _arguments(self):
        out = [self._argument()]
        while self.take(","):
            out.append(self._argument())
        return out

    def _argument(self) -> tuple[Token, int | None]:
        token, index = self.next("id"), None
        if self.take("["):
            index = int(self.next("int").text)
            self.next("]")
        return token, index

    def _find(self, token: Token, kind: str) -> _Register:
        what = "quantum" if kind == "qreg" else "classical"
        register = self.registers.get(token.text)
        if register is None:
            known = [n for n, r in self.registers.items() if r.kind == kind]
            raise self.error(token, f"no register {token.text!r} is declared", remedy=did_you_mean(token.text, known))
        if register.kind != kind:
            raise self.error(token, f"register {token.text!r} is not a {what} one")
        return register

    def _indices(self, argument: tuple[Token, int | None], kind: str) -> list[int]:
        token, index = argument
        register = self._find(token, kind)
        if index is None:
            return list(range(register.start, register.start + register.size))
        if index >= register.size:
            raise self.error(
                token, f"index out of range for register {token.text!r}", got=index, expected=f"0..{register.size - 1}"
            )
        return [register.start + index]

    # -- expressions: + - bind loosest, then * /, then unary minus, then ^ (right associative)

    def _angles(self, scope: list[str]) -> list[Value]:
        if not self.take("(") or self.take(")"):
            return []
        out = [self._sum(scope)]
        while self.take(","):
            out.append(self._sum(scope))
        self.next(")")
        return out

    def _number(self, value: Value, token: Token, scope: dict[str, float] | None = None) -> float:
        try:
            number = float(value(scope or {}))
        except (ZeroDivisionError, ValueError, OverflowError) as error:
            raise self.error(token, f"a parameter of {token.text!r} cannot be computed: {error}") from error
        except TypeError as error:  # a negative number to a fractional power is complex in Python
            raise self.error(token, f"a parameter of {token.text!r} is not real") from error
        if not math.isfinite(number):
            raise self.error(token, f"a parameter of {token.text!r} is not finite", got=number)
        return number

    def _sum(self, scope: list[str]) -> Value:
        left = self._product(scope)
        while self.peek.kind in ("+", "-"):
            sign, right = self.next().kind, self._product(scope)
            left = _add(left, right) if sign == "+" else _subtract(left, right)
        return left

    def _product(self, scope: list[str]) -> Value:
        left = self._unary(scope)
        while self.peek.kind in ("*", "/"):
            sign, right = self.next().kind, self._unary(scope)
            left = _multiply(left, right) if sign == "*" else _divide(left, right)
        return left

    def _unary(self, scope: list[str]) -> Value:
        if self.take("-"):
            value = self._unary(scope)
            return lambda s: -value(s)
        if self.take("+"):
            return self._unary(scope)
        base = self._atom(scope)
        if self.take("^"):
            exponent = self._unary(scope)
            return lambda s: base(s) ** exponent(s)
        return base

    def _atom(self, scope: list[str]) -> Value:
        token = self.next()
        if token.kind in ("real", "int"):
            number = float(token.text)
            return lambda s: number
        if token.kind == "pi":
            return lambda s: math.pi
        if token.kind == "(":
            value = self._sum(scope)
            self.next(")")
            return value
        if token.kind in _FUNCTIONS:
            self.next("(")
            value, function = self._sum(scope), _FUNCTIONS[token.kind]
            self.next(")")
            return lambda s: function(value(s))
        if token.kind == "id":
            if token.text not in scope:
                raise self.error(token, f"no parameter {token.text!r}", remedy=did_you_mean(token.text, [*scope, "pi"]))
            return lambda s: s[token.text]
        found = "the end of the file" if token.kind == "end" else repr(token.text)
        raise self.error(token, f"expected an expression, found {found}")


def _add(a: Value, b: Value) -> Value:
    return lambda s: a(s) + b(s)


def _subtract(a: Value, b: Value) -> Value:
    return lambda s: a(s) - b(s)


def _multiply(a: Value, b: Value) -> Value:
    return lambda s: a(s) * b(s)


def _divide(a: Value, b: Value) -> Value:
    return lambda s: a(s) / b(s)
