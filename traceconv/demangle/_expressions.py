"""Read values and expressions in mangled names, such as template arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceconv.demangle._cursor import Cursor, Type, Unknown
from traceconv.demangle._tables import BINARY, SUFFIXES, UNARY

if TYPE_CHECKING:
    from traceconv.demangle._grammar import Grammar


class Expressions:
    """Reads expressions; the grammar reads the types and names in them."""

    def __init__(self, text: Cursor, grammar: Grammar) -> None:
        self._text = text
        self._grammar = grammar

    def value(self) -> Type:
        """Return an expression in place of a type."""
        return Type(self.expression())

    def literal(self) -> str:
        """Return a value: 4, true, 3ul, (Mode)1."""
        self._text.need("L")
        if self._text.take("_Z", "Z"):
            args, self._grammar.args = self._grammar.args, []
            name, is_template, _ = self._grammar.name(of_function=True)
            if self._text.peek() != "E":  # a function: its name is enough
                _ = self._grammar.type() if is_template else None
                self._grammar.parameters()
            self._grammar.args = args
            self._text.need("E")
            return name
        kind = str(self._grammar.type())
        if kind == "decltype(nullptr)":
            self._text.match("0?E")
            return f"({kind})0"
        value = self._text.match("n?[0-9a-f]*E")[:-1].replace("n", "-", 1)
        if kind == "bool" and value in ("0", "1"):
            return "true" if value == "1" else "false"
        if kind in SUFFIXES:
            return value + SUFFIXES[kind]
        return f"({kind}){f'[{value}]' if kind in ('float', 'double') else value}"

    def expression(self) -> str:
        """Return the text of an expression."""
        if self._text.peek() == "L":
            return self.literal()
        if self._text.peek() == "T":
            return str(self._grammar.template_parameter())
        if self._text.take("fpT"):
            return "this"
        if self._text.take("fp"):
            self._text.match("[rVK]*")
            return f"{{parm#{self._text.index() + 1}}}"
        if self._text.take("st"):
            return f"sizeof ({self._grammar.type()})"
        if self._text.take("sz"):
            return f"sizeof ({self.expression()})"
        if self._text.take("sZ"):
            return f"sizeof...({self.expression()})"
        if self._text.take("cv"):
            return f"({self._grammar.type()}){self._bracketed()}"
        if self._text.take("cl"):
            return self._call()
        if self._text.take("dt"):
            return f"{self._bracketed()}.{self._grammar.unqualified('')}"
        if self._text.take("sr"):
            scope = self._grammar.type()
            name = self._grammar.unqualified("")
            return f"{scope}::{name}" + (self._grammar.template_args(False) if self._text.peek() == "I" else "")
        if self._text.peek(4) == "adL_":
            self._text.at += 2
            return f"&{self.literal()}"
        if operator := self._text.take(*UNARY):
            return UNARY[operator] + self._bracketed()
        if operator := self._text.take(*BINARY):
            text = f"{self._bracketed()}{BINARY[operator]}{self._bracketed()}"
            return f"({text})" if operator == "gt" else text  # it would end a list of template arguments
        if self._text.peek().isdigit():
            return self._grammar.name()[0]
        raise Unknown

    def _bracketed(self) -> str:
        """Return an operand, in parentheses unless it is a plain parameter."""
        is_plain = self._text.peek(2) == "fp"
        expression = self.expression()
        return expression if is_plain else f"({expression})"

    def _call(self) -> str:
        function = self.expression()
        args = []
        while not self._text.take("E"):
            args.append(self.expression())
        return f"{function}({', '.join(args)})"
