"""OpenQASM 2.0: reading and writing. Source of the language: A. Cross et al., arXiv:1707.03429 (2017)."""

from sciax.quantum.qasm._export import to_qasm as to_qasm
from sciax.quantum.qasm._lexer import QasmError as QasmError
from sciax.quantum.qasm._parser import from_qasm as from_qasm
from sciax.quantum.qasm._parser import read_qasm as read_qasm
