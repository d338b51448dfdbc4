"""Tokens of OpenQASM 2, with their places."""

import re
from dataclasses import dataclass
from typing import Any

from sciax.core.errors import FileFormatError


class QasmError(FileFormatError):
    """A program that is not valid OpenQASM 2; `line` and `column` count from 1."""

    def __init__(self, message: str, line: int, column: int, source: str = "", **details: Any):
        self.line, self.column = line, column
        where = f"{source}, " if source else ""
        super().__init__(f"{where}line {line}, column {column}: {message}", **details)


@dataclass(frozen=True)
class Token:
    """kind is "id", "real", "int", "string", "end", or the symbol or keyword itself."""

    kind: str
    text: str
    line: int
    column: int


KEYWORDS = {
    "OPENQASM",
    "include",
    "qreg",
    "creg",
    "gate",
    "opaque",
    "measure",
    "reset",
    "barrier",
    "if",
    "U",
    "CX",
    "pi",
    "sin",
    "cos",
    "tan",
    "exp",
    "ln",
    "sqrt",
}
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f]+)|(?P<newline>\n)|(?P<comment>//[^\n]*)
      |(?P<real>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
      |(?P<int>\d+)|(?P<id>[A-Za-z_][A-Za-z0-9_]*)|(?P<string>"[^"\n]*")|(?P<symbol>->|==|[;,(){}\[\]+\-*/^])""",
    re.VERBOSE,
)


def tokenize(text: str, source: str = "") -> list[Token]:
    """Raises:
    QasmError: a character that starts no token.
    """
    tokens, line, start, at = [], 1, 0, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise QasmError(f"unexpected character {text[at]!r}", line, at - start + 1, source)
        kind, word = str(match.lastgroup), match.group()
        if kind == "newline":
            line, start = line + 1, match.end()
        elif kind not in ("space", "comment"):
            if kind == "symbol" or (kind == "id" and word in KEYWORDS):
                kind = word
            tokens.append(Token(kind, word, line, at - start + 1))
        at = match.end()
    tokens.append(Token("end", "", line, at - start + 1))
    return tokens
