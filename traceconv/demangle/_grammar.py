"""Functions, names, types and templates of the grammar; expressions are in `_expressions`."""

from __future__ import annotations

import re
from collections.abc import Callable

from traceconv.demangle._cursor import Arg, Cursor, Type, Unknown, flat
from traceconv.demangle._expressions import Expressions
from traceconv.demangle._tables import BUILTIN, OPERATORS, STANDARD

#: Substitutions can make a short name huge.
MAX_LENGTH = 1 << 15
_MAX_STEPS = 5000


class Grammar:
    """Reads one name from left to right.

    Attributes:
        args: the template arguments that `T_`, `T0_`, ... refer to.
        _known: the substitutions that `S_`, `S0_`, ... refer to, each with its position if it contains template
            parameters, since these can have other values where it is referred to; else -1.
        _pack: the element of a pack while a pattern is expanded, else None.
    """

    def __init__(self, name: str) -> None:
        self._text = Cursor(name, name.index("_Z") + 2)
        self._expressions = Expressions(self._text, self)
        self._known: list[tuple[Type, int]] = []
        self._budget = _MAX_STEPS
        self._uses = 0  # the number of template parameters so far
        self.args: list[Arg] = []
        self._pack: int | None = None
        self._pack_size: int | None = None
        self._lambdas = 0

    def whole(self, *, parameters: bool) -> str:
        """Return the text of the whole name, of a function with its parameters or without."""
        name = self._encoding(with_result=parameters, with_parameters=parameters)
        rest = self._text.rest()
        if rest and not rest.startswith("."):
            raise Unknown
        return f"{name} [clone {rest}]" if rest else name

    def _keep(self, inner: Type, at: int = -1) -> Type:
        if len(inner.before) + len(inner.after) > MAX_LENGTH:
            raise Unknown
        self._known.append((inner, at))
        return inner

    # -- functions ----------------------------------------------------------------------------------------------

    def _encoding(self, with_result: bool = True, with_parameters: bool = True) -> str:
        """Return a function with its parameters, or a variable."""
        name, is_template, ending = self.name(of_function=True)
        if self._text.peek() in ("", "E", "."):
            return name
        result = self.type() if is_template else None
        parameters = self.parameters()
        text = f"{name}({parameters}){ending}" if with_parameters else name
        if result is None or not with_result:
            return text
        return f"{result.before}{'' if result.after else ' '}{text}{result.after}"

    def parameters(self) -> str:
        """Return the types up to the end of the function."""
        types: list[str] = []
        while self._text.peek() not in ("", "E", ".") and not re.match("[RO]E", self._text.peek(2)):
            types += flat(self._type_or_pack())
        return "" if types == ["void"] else ", ".join(types)

    # -- names ----------------------------------------------------------------------------------------------------

    def name(self, of_function: bool = False) -> tuple[str, bool, str]:
        """Return a name, whether template arguments end it, and the qualifiers of a member function."""
        if self._text.take("N"):
            return self._nested(of_function)
        if self._text.take("Z"):
            return self._local(of_function)
        if self._text.peek() == "S" and self._text.peek(2) != "St":
            name = str(self._substitution())
        else:
            name = "std::" if self._text.take("St") else ""
            self._text.take("L")
            name += self.unqualified("")
            if self._text.peek() == "I":
                self._keep(Type(name))
        if self._text.peek() != "I":
            return name, False, ""
        return _before_args(name) + self.template_args(of_function), True, ""

    def _nested(self, of_function: bool) -> tuple[str, bool, str]:
        """Return a name in namespaces and classes."""
        qualifiers = self._text.match("r?V?K?")
        ending = "".join(word for letter, word in (("K", " const"), ("V", " volatile")) if letter in qualifiers)
        ending += {"R": " &", "O": " &&", "": ""}[self._text.take("R", "O")]
        name, is_template, is_known, returns = "", False, False, True
        while not self._text.take("E"):
            is_template, is_known = False, True
            if self._text.take("St"):
                name, is_known = "std", False
            elif self._text.peek() == "S":
                name, is_known = str(self._substitution()), False
            elif self._text.peek() == "I":
                name = _before_args(name) + self.template_args(of_function)
                is_template = True
            elif self._text.peek() == "T" or self._text.peek(2) in ("Dt", "DT"):
                name = str(self.type(keep=False))
            elif self._text.take("M"):
                continue
            else:
                self._text.take("L")
                returns = self._text.peek() not in ("C", "D") and self._text.peek(2) != "cv"
                name = f"{name}::{self.unqualified(name)}" if name else self.unqualified("")
            if is_known:
                self._keep(Type(name))
        if is_known:
            # the whole name is a type, which the reader of types keeps, or a function, which is never kept
            self._known.pop()
        return name, is_template and returns, ending

    def _local(self, of_function: bool) -> tuple[str, bool, str]:
        """Return the name of something inside a function."""
        args = self.args
        inside = self._encoding(with_result=False)
        self.args = args
        self._text.need("E")
        if self._text.take("s"):
            name, is_template, ending = "string literal", False, ""
        else:
            if self._text.take("d"):
                self._text.index()
            name, is_template, ending = self.name(of_function)
        if re.match(r"_\d|__\d", self._text.peek(3)):
            self._text.match(r"__\d+_|_\d")
        return f"{inside}::{name}", is_template, ending

    def unqualified(self, scope: str) -> str:
        """Return one component of a name; `scope` is the text before it."""
        letter = self._text.peek()
        if letter.isdigit():
            name = self._text.source_name()
        elif letter == "C" or (letter == "D" and self._text.peek(2)[1:] in "01245"):
            self._text.match(r"CI?[1-5]|D[0-5]")
            name = ("~" if letter == "D" else "") + _last_component(scope)
        elif self._text.take("Ut"):
            name = f"{{unnamed type#{self._text.index() + 1}}}"
        elif self._text.take("Ul"):
            self._lambdas += 1
            parameters = self.parameters()
            self._lambdas -= 1
            self._text.need("E")
            name = f"{{lambda({parameters})#{self._text.index() + 1}}}"
        elif self._text.take("cv"):
            name = f"operator {self.type()}"
        elif self._text.take("li"):
            name = f'operator"" {self._text.source_name()}'
        else:
            name = f"operator{OPERATORS[self._text.match('[a-z][a-zA-Z]')]}" if self._text.peek(2) in OPERATORS else ""
        while name and self._text.take("B"):
            name += f"[abi:{self._text.source_name()}]"
        if not name:
            raise Unknown
        return name

    # -- types ------------------------------------------------------------------------------------------------------

    def _type_or_pack(self) -> Arg:
        return self._expansion(self.type) if self._text.take("Dp") else self.type()

    def type(self, keep: bool = True) -> Type:
        """Return one type; with `keep`, later parts of the name may refer to it."""
        start, uses = self._text.at, self._uses
        self._budget -= 1
        type_name, is_new = self._new_type()
        if start == self._text.at or self._budget < 0:
            raise Unknown
        return self._keep(type_name, start if self._uses > uses else -1) if is_new and keep else type_name

    def _new_type(self) -> tuple[Type, bool]:
        """Return a type, and whether it can be referred to later."""
        letter = self._text.peek()
        if letter in "rVK" and letter:
            return self._qualified(), True
        if mark := {"P": "*", "R": "&", "O": "&&"}.get(letter, ""):
            self._text.at += 1
            return _collapsed(self.type(), mark), True
        if letter == "F":
            return self._function(), True
        if letter == "A":
            return self._array(), True
        if letter == "M":
            return self._member_pointer(), True
        if letter == "T":
            return self._parameter_type()
        if letter == "S" and self._text.peek(2) != "St":
            return self._substituted()
        if letter == "D" or letter == "u" or letter in BUILTIN:
            return self._builtin()
        return Type(self.name()[0]), True

    def _qualified(self) -> Type:
        letters = self._text.match("r?V?K?")
        words = "".join(word for letter, word in (("K", " const"), ("V", " volatile")) if letter in letters)
        inner = self.type()
        is_function = inner.wraps and not inner.after.startswith(" [")
        if is_function:
            return Type(inner.before, inner.after + words, True)
        return Type(inner.before + words, inner.after, inner.wraps)

    def _function(self) -> Type:
        self._text.need("F")
        self._text.take("Y")
        result = self.type()
        parameters = self.parameters()
        ending = {"R": " &", "O": " &&", "": ""}[self._text.take("R", "O")]
        self._text.need("E")
        gap = "" if result.after else " "
        return Type(f"{result.before}{gap}", f"({parameters}){ending}{result.after}", True)

    def _array(self) -> Type:
        self._text.need("A")
        size = (
            self._text.match(r"\d*")
            if self._text.peek().isdigit() or self._text.peek() == "_"
            else self._expressions.expression()
        )
        self._text.need("_")
        inner = self.type()
        return Type(inner.before, f" [{size}]{inner.after.lstrip() if inner.wraps else inner.after}", True)

    def _member_pointer(self) -> Type:
        self._text.need("M")
        of_class = self.type()
        inner = self.type()
        return inner.declared(f"{of_class}::*") if inner.wraps else inner.declared(f" {of_class}::*")

    def _parameter_type(self) -> tuple[Type, bool]:
        parameter = self.template_parameter()
        if self._text.peek() == "I":
            self._keep(parameter)
            return Type(f"{parameter}{self.template_args(False)}"), True
        return parameter, True

    def _substituted(self) -> tuple[Type, bool]:
        name = self._substitution()
        if self._text.peek() == "I":
            return Type(f"{name}{self.template_args(False)}"), True
        return name, False

    def _builtin(self) -> tuple[Type, bool]:
        if self._text.take("u"):
            return Type(self._text.source_name()), True
        if self._text.take("Dt", "DT"):
            inner = self._expressions.expression()
            self._text.need("E")
            return Type(f"decltype ({inner})"), True
        if self._text.take("Do"):
            function = self._function()
            return Type(function.before, f"{function.after} noexcept", True), True
        if self._text.take("Dv"):
            size = self._text.match(r"\d+")
            self._text.need("_")
            return Type(f"{self.type()} __vector({size})"), True
        if self._text.take("DF16b"):
            return Type("__bf16"), False
        if self._text.take("DF16_"):
            return Type("_Float16"), False
        return Type(BUILTIN[self._text.take(*BUILTIN)]), False

    def _substitution(self) -> Type:
        self._text.need("S")
        if self._text.peek() in STANDARD and self._text.peek():
            return Type(STANDARD[self._text.take(*STANDARD)])
        digits = self._text.match("[0-9A-Z]{0,4}_")[:-1]
        name, at = self._known[int(digits, 36) + 1 if digits else 0]
        if at < 0:
            return name
        here, known = self._text.at, len(self._known)
        self._text.at = at
        name = self.type()
        self._text.at = here
        del self._known[known:]
        return name

    # -- templates --------------------------------------------------------------------------------------------------

    def template_args(self, of_function: bool) -> str:
        """Return template arguments, <...>; `T_` refers to those of the function from here on."""
        self._text.need("I")
        args: list[Arg] = []
        if of_function:
            self.args = args
        while not self._text.take("E"):
            args.append(self._template_arg())
        text = ", ".join(flat(args))
        if len(text) > MAX_LENGTH:
            raise Unknown
        return f"<{text} >" if text.endswith(">") else f"<{text}>"

    def _template_arg(self) -> Arg:
        if self._text.peek() == "L":
            return Type(self._expressions.literal())
        if self._text.take("X"):
            arg: Arg
            arg = self._expansion(self._expressions.value) if self._text.take("sp") else self._expressions.value()
            self._text.need("E")
            return arg
        if self._text.take("J"):
            pack: list[Arg] = []
            while not self._text.take("E"):
                pack.append(self._template_arg())
            return pack
        return self._type_or_pack()

    def template_parameter(self) -> Type:
        self._text.need("T")
        index = self._text.index()
        self._uses += 1
        if self._lambdas:
            return Type(f"auto:{index + 1}")
        if index >= len(self.args):
            raise Unknown
        arg = self.args[index]
        if isinstance(arg, Type):
            return arg
        if self._pack is None:
            return Type(", ".join(flat(arg)))
        self._pack_size = len(arg)
        if self._pack >= len(arg):
            return Type("")
        (one,) = arg[self._pack : self._pack + 1]
        return one if isinstance(one, Type) else Type(", ".join(flat(one)))

    def _expansion(self, read: Callable[[], Type]) -> Arg:
        """Return the expansion of a pattern: once for each element of its pack."""
        outer, start, known = (self._pack, self._pack_size), self._text.at, None
        args: list[Arg] = []
        number = 0
        while True:
            self._text.at, self._pack, self._pack_size = start, number, None
            args.append(read())
            if known is None:
                known = len(self._known)
            del self._known[known:]
            number += 1
            if self._pack_size is None or number >= self._pack_size:
                break
        if self._pack_size == 0:
            args = []
        self._pack, self._pack_size = outer
        return args


def _collapsed(inner: Type, mark: str) -> Type:
    """Return a pointer or reference; a reference to a reference is collapsed."""
    end = inner.before
    if mark != "*" and end.endswith("&"):
        return Type(end.removesuffix("&"), inner.after) if mark == "&" and end.endswith("&&") else inner
    return inner.declared(mark)


def _before_args(name: str) -> str:
    """Return a name as it is written before template arguments: operator<< <int>, not operator<<<int>."""
    return f"{name} " if name.endswith("<") else name


def _last_component(scope: str) -> str:
    """Return the name of a class without namespaces and template arguments, for its constructors."""
    depth, start, end = 0, 0, len(scope)
    for at, letter in enumerate(scope):
        if letter in "<({[":
            if depth == 0 and letter in "<[":
                end = at
            depth += 1
        elif letter in ">)}]":
            depth -= 1
        elif depth == 0 and letter == ":":
            start, end = at + 1, len(scope)
    return scope[start:end]
