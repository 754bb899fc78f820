"""Demangle C++ names.

    _ZN2at6native4gemmIfLi4EEEvPT_i   ->   void at::native::gemm<float, 4>(float*, int)

Source of the grammar: the Itanium C++ ABI (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling), which nvcc and
all compilers on Linux and macOS follow; the text is that of c++filt. The constructs in names of kernels are supported:
templates with packs and values, lambdas, local and unnamed types, pointers to functions and members, simple
expressions. Other names are returned unchanged.

No library does this everywhere: cxxfilt calls the C++ runtime of the machine, which Windows does not have and whose
text differs from release to release; cpp_demangle (0.1.3, compiled for Linux on x86-64 only) tells 33 of the 94 names
of the tests otherwise than c++filt, some wrongly (packs of pointers); itanium_demangler (1.1) tells 73 otherwise or not
at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

BUILTIN = {
    "v": "void",
    "w": "wchar_t",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "n": "__int128",
    "o": "unsigned __int128",
    "f": "float",
    "d": "double",
    "e": "long double",
    "g": "__float128",
    "z": "...",
    "Dn": "decltype(nullptr)",
    "Di": "char32_t",
    "Ds": "char16_t",
    "Du": "char8_t",
    "Da": "auto",
    "Dc": "decltype(auto)",
    "Dh": "half",
}
STANDARD = {
    "a": "std::allocator",
    "b": "std::basic_string",
    "s": "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
    "i": "std::basic_istream<char, std::char_traits<char> >",
    "o": "std::basic_ostream<char, std::char_traits<char> >",
    "d": "std::basic_iostream<char, std::char_traits<char> >",
}
UNARY = {"ps": "+", "ng": "-", "ad": "&", "de": "*", "co": "~", "nt": "!", "pp": "++", "mm": "--"}
BINARY = {
    "pl": "+",
    "mi": "-",
    "ml": "*",
    "dv": "/",
    "rm": "%",
    "an": "&",
    "or": "|",
    "eo": "^",
    "aS": "=",
    "pL": "+=",
    "mI": "-=",
    "mL": "*=",
    "dV": "/=",
    "rM": "%=",
    "aN": "&=",
    "oR": "|=",
    "eO": "^=",
    "ls": "<<",
    "rs": ">>",
    "lS": "<<=",
    "rS": ">>=",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "gt": ">",
    "le": "<=",
    "ge": ">=",
    "aa": "&&",
    "oo": "||",
    "cm": ",",
    "pm": "->*",
    "pt": "->",
}
OTHER_OPERATORS = {"nw": " new", "na": " new[]", "dl": " delete", "da": " delete[]", "cl": "()", "ix": "[]"}
OPERATORS = UNARY | BINARY | OTHER_OPERATORS
SUFFIXES = {"int": "", "unsigned int": "u", "long": "l", "unsigned long": "ul", "long long": "ll"}
SUFFIXES["unsigned long long"] = "ull"


class Unknown(Exception):
    """The name has an unsupported construct."""


class Type(NamedTuple):
    """The text of a type before and after its declarator; `wraps` if a declarator needs parentheses."""

    before: str
    after: str = ""
    wraps: bool = False

    def __str__(self) -> str:
        return self.before + self.after

    def declared(self, mark: str) -> Type:
        """Return a pointer or reference to it."""
        if self.wraps:
            gap = "" if self.before.endswith((" ", "(", "*", "&")) else " "
            return Type(f"{self.before}{gap}({mark}", f"){self.after}")
        return Type(self.before + mark, self.after)


#: A type, or a parameter pack of several types or none.
Arg = Type | list["Arg"]


def flat(arg: Arg) -> list[str]:
    """Return the texts of all types in nested packs."""
    if isinstance(arg, Type):
        return [str(arg)] if str(arg) else []
    return [text for part in arg for text in flat(part)]


class Cursor:
    """A position in a name; methods raise `Unknown` if a required text is missing."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def rest(self) -> str:
        """Return the rest of the name."""
        return self.text[self.at :]

    def peek(self, size: int = 1) -> str:
        """Return the next characters, fewer at the end."""
        return self.text[self.at : self.at + size]

    def take(self, *words: str) -> str:
        """Return the first of the words that comes next, "" for none."""
        for word in words:
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return word
        return ""

    def need(self, word: str) -> None:
        """Skip a required word."""
        if not self.take(word):
            raise Unknown

    def match(self, pattern: str) -> str:
        """Return the match of a required pattern."""
        match_here = re.compile(pattern).match(self.text, self.at)
        if match_here is None:
            raise Unknown
        self.at = match_here.end()
        return match_here[0]

    def index(self) -> int:
        """Return a number: _ is 0, 0_ is 1, and so on."""
        digits = self.match(r"\d{0,4}_")[:-1]
        return int(digits) + 1 if digits else 0

    def source_name(self) -> str:
        """Return an identifier that follows its length."""
        size = int(self.match(r"\d{1,5}"))
        name = self.peek(size)
        if len(name) < size or not size:
            raise Unknown
        self.at += size
        return "(anonymous namespace)" if name.startswith("_GLOBAL__N_") else name


#: Substitutions can make a short name huge.
MAX_LENGTH = 1 << 15
_MAX_STEPS = 5000


class Grammar(Cursor):
    """Reads one name from left to right.

    Attributes:
        args: the template arguments that `T_`, `T0_`, ... refer to.
        _known: the substitutions that `S_`, `S0_`, ... refer to, each with its position if it contains template
            parameters, since these can have other values where it is referred to; else -1.
        _pack: the element of a pack while a pattern is expanded, else None.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, name.index("_Z") + 2)
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
        rest = self.rest()
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
        if self.peek() in ("", "E", "."):
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
        while self.peek() not in ("", "E", ".") and not re.match("[RO]E", self.peek(2)):
            types += flat(self._type_or_pack())
        return "" if types == ["void"] else ", ".join(types)

    # -- names ----------------------------------------------------------------------------------------------------

    def name(self, of_function: bool = False) -> tuple[str, bool, str]:
        """Return a name, whether template arguments end it, and the qualifiers of a member function."""
        if self.take("N"):
            return self._nested(of_function)
        if self.take("Z"):
            return self._local(of_function)
        if self.peek() == "S" and self.peek(2) != "St":
            name = str(self._substitution())
        else:
            name = "std::" if self.take("St") else ""
            self.take("L")
            name += self.unqualified("")
            if self.peek() == "I":
                self._keep(Type(name))
        if self.peek() != "I":
            return name, False, ""
        return _before_args(name) + self.template_args(of_function), True, ""

    def _nested(self, of_function: bool) -> tuple[str, bool, str]:
        """Return a name in namespaces and classes."""
        qualifiers = self.match("r?V?K?")
        ending = "".join(word for letter, word in (("K", " const"), ("V", " volatile")) if letter in qualifiers)
        ending += {"R": " &", "O": " &&", "": ""}[self.take("R", "O")]
        name, is_template, is_known, returns = "", False, False, True
        while not self.take("E"):
            is_template, is_known = False, True
            if self.take("St"):
                name, is_known = "std", False
            elif self.peek() == "S":
                name, is_known = str(self._substitution()), False
            elif self.peek() == "I":
                name = _before_args(name) + self.template_args(of_function)
                is_template = True
            elif self.peek() == "T" or self.peek(2) in ("Dt", "DT"):
                name = str(self.type(keep=False))
            elif self.take("M"):
                continue
            else:
                self.take("L")
                returns = self.peek() not in ("C", "D") and self.peek(2) != "cv"
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
        self.need("E")
        if self.take("s"):
            name, is_template, ending = "string literal", False, ""
        else:
            if self.take("d"):
                self.index()
            name, is_template, ending = self.name(of_function)
        if re.match(r"_\d|__\d", self.peek(3)):
            self.match(r"__\d+_|_\d")
        return f"{inside}::{name}", is_template, ending

    def unqualified(self, scope: str) -> str:
        """Return one component of a name; `scope` is the text before it."""
        letter = self.peek()
        if letter.isdigit():
            name = self.source_name()
        elif letter == "C" or (letter == "D" and self.peek(2)[1:] in "01245"):
            self.match(r"CI?[1-5]|D[0-5]")
            name = ("~" if letter == "D" else "") + _last_component(scope)
        elif self.take("Ut"):
            name = f"{{unnamed type#{self.index() + 1}}}"
        elif self.take("Ul"):
            self._lambdas += 1
            parameters = self.parameters()
            self._lambdas -= 1
            self.need("E")
            name = f"{{lambda({parameters})#{self.index() + 1}}}"
        elif self.take("cv"):
            name = f"operator {self.type()}"
        elif self.take("li"):
            name = f'operator"" {self.source_name()}'
        else:
            name = f"operator{OPERATORS[self.match('[a-z][a-zA-Z]')]}" if self.peek(2) in OPERATORS else ""
        while name and self.take("B"):
            name += f"[abi:{self.source_name()}]"
        if not name:
            raise Unknown
        return name

    # -- types ------------------------------------------------------------------------------------------------------

    def _type_or_pack(self) -> Arg:
        return self._expansion(self.type) if self.take("Dp") else self.type()

    def type(self, keep: bool = True) -> Type:
        """Return one type; with `keep`, later parts of the name may refer to it."""
        start, uses = self.at, self._uses
        self._budget -= 1
        type_name, is_new = self._new_type()
        if start == self.at or self._budget < 0:
            raise Unknown
        return self._keep(type_name, start if self._uses > uses else -1) if is_new and keep else type_name

    def _new_type(self) -> tuple[Type, bool]:
        """Return a type, and whether it can be referred to later."""
        letter = self.peek()
        if letter in "rVK" and letter:
            return self._qualified(), True
        if mark := {"P": "*", "R": "&", "O": "&&"}.get(letter, ""):
            self.at += 1
            return _collapsed(self.type(), mark), True
        if letter == "F":
            return self._function(), True
        if letter == "A":
            return self._array(), True
        if letter == "M":
            return self._member_pointer(), True
        if letter == "T":
            return self._parameter_type()
        if letter == "S" and self.peek(2) != "St":
            return self._substituted()
        if letter == "D" or letter == "u" or letter in BUILTIN:
            return self._builtin()
        return Type(self.name()[0]), True

    def _qualified(self) -> Type:
        letters = self.match("r?V?K?")
        words = "".join(word for letter, word in (("K", " const"), ("V", " volatile")) if letter in letters)
        inner = self.type()
        is_function = inner.wraps and not inner.after.startswith(" [")
        if is_function:
            return Type(inner.before, inner.after + words, True)
        return Type(inner.before + words, inner.after, inner.wraps)

    def _function(self) -> Type:
        self.need("F")
        self.take("Y")
        result = self.type()
        parameters = self.parameters()
        ending = {"R": " &", "O": " &&", "": ""}[self.take("R", "O")]
        self.need("E")
        gap = "" if result.after else " "
        return Type(f"{result.before}{gap}", f"({parameters}){ending}{result.after}", True)

    def _array(self) -> Type:
        self.need("A")
        size = self.match(r"\d*") if self.peek().isdigit() or self.peek() == "_" else self.expression()
        self.need("_")
        inner = self.type()
        return Type(inner.before, f" [{size}]{inner.after.lstrip() if inner.wraps else inner.after}", True)

    def _member_pointer(self) -> Type:
        self.need("M")
        of_class = self.type()
        inner = self.type()
        return inner.declared(f"{of_class}::*") if inner.wraps else inner.declared(f" {of_class}::*")

    def _parameter_type(self) -> tuple[Type, bool]:
        parameter = self.template_parameter()
        if self.peek() == "I":
            self._keep(parameter)
            return Type(f"{parameter}{self.template_args(False)}"), True
        return parameter, True

    def _substituted(self) -> tuple[Type, bool]:
        name = self._substitution()
        if self.peek() == "I":
            return Type(f"{name}{self.template_args(False)}"), True
        return name, False

    def _builtin(self) -> tuple[Type, bool]:
        if self.take("u"):
            return Type(self.source_name()), True
        if self.take("Dt", "DT"):
            inner = self.expression()
            self.need("E")
            return Type(f"decltype ({inner})"), True
        if self.take("Do"):
            function = self._function()
            return Type(function.before, f"{function.after} noexcept", True), True
        if self.take("Dv"):
            size = self.match(r"\d+")
            self.need("_")
            return Type(f"{self.type()} __vector({size})"), True
        if self.take("DF16b"):
            return Type("__bf16"), False
        if self.take("DF16_"):
            return Type("_Float16"), False
        return Type(BUILTIN[self.take(*BUILTIN)]), False

    def _substitution(self) -> Type:
        self.need("S")
        if self.peek() in STANDARD and self.peek():
            return Type(STANDARD[self.take(*STANDARD)])
        digits = self.match("[0-9A-Z]{0,4}_")[:-1]
        name, at = self._known[int(digits, 36) + 1 if digits else 0]
        if at < 0:
            return name
        here, known = self.at, len(self._known)
        self.at = at
        name = self.type()
        self.at = here
        del self._known[known:]
        return name

    # -- templates --------------------------------------------------------------------------------------------------

    def template_args(self, of_function: bool) -> str:
        """Return template arguments, <...>; `T_` refers to those of the function from here on."""
        self.need("I")
        args: list[Arg] = []
        if of_function:
            self.args = args
        while not self.take("E"):
            args.append(self._template_arg())
        text = ", ".join(flat(args))
        if len(text) > MAX_LENGTH:
            raise Unknown
        return f"<{text} >" if text.endswith(">") else f"<{text}>"

    def _template_arg(self) -> Arg:
        if self.peek() == "L":
            return Type(self.literal())
        if self.take("X"):
            arg: Arg
            arg = self._expansion(self.value) if self.take("sp") else self.value()
            self.need("E")
            return arg
        if self.take("J"):
            pack: list[Arg] = []
            while not self.take("E"):
                pack.append(self._template_arg())
            return pack
        return self._type_or_pack()

    def template_parameter(self) -> Type:
        self.need("T")
        index = self.index()
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
        (element,) = arg[self._pack : self._pack + 1]
        return element if isinstance(element, Type) else Type(", ".join(flat(element)))

    def _expansion(self, read: Callable[[], Type]) -> Arg:
        """Return the expansion of a pattern: once for each element of its pack."""
        outer, start, known = (self._pack, self._pack_size), self.at, None
        args: list[Arg] = []
        number = 0
        while True:
            self.at, self._pack, self._pack_size = start, number, None
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

    # -- values and expressions, such as template arguments

    def value(self) -> Type:
        """Return an expression in place of a type."""
        return Type(self.expression())

    def literal(self) -> str:
        """Return a value: 4, true, 3ul, (Mode)1."""
        self.need("L")
        if self.take("_Z", "Z"):
            args, self.args = self.args, []
            name, is_template, _ = self.name(of_function=True)
            if self.peek() != "E":  # a function: its name is enough
                _ = self.type() if is_template else None
                self.parameters()
            self.args = args
            self.need("E")
            return name
        kind = str(self.type())
        if kind == "decltype(nullptr)":
            self.match("0?E")
            return f"({kind})0"
        value = self.match("n?[0-9a-f]*E")[:-1].replace("n", "-", 1)
        if kind == "bool" and value in ("0", "1"):
            return "true" if value == "1" else "false"
        if kind in SUFFIXES:
            return value + SUFFIXES[kind]
        return f"({kind}){f'[{value}]' if kind in ('float', 'double') else value}"

    def expression(self) -> str:
        """Return the text of an expression."""
        if self.peek() == "L":
            return self.literal()
        if self.peek() == "T":
            return str(self.template_parameter())
        if self.take("fpT"):
            return "this"
        if self.take("fp"):
            self.match("[rVK]*")
            return f"{{parm#{self.index() + 1}}}"
        if operator := self.take("st", "sz"):
            return f"sizeof ({self.type() if operator == 'st' else self.expression()})"
        if self.take("sZ"):
            return f"sizeof...({self.expression()})"
        if self.take("cv"):
            return f"({self.type()}){self._bracketed()}"
        if self.take("cl"):
            return self._call()
        if self.take("dt"):
            return f"{self._bracketed()}.{self.unqualified('')}"
        if self.take("sr"):
            scope = self.type()
            name = self.unqualified("")
            return f"{scope}::{name}" + (self.template_args(False) if self.peek() == "I" else "")
        if self.peek(4) == "adL_":
            self.at += 2
            return f"&{self.literal()}"
        if operator := self.take(*UNARY):
            return UNARY[operator] + self._bracketed()
        if operator := self.take(*BINARY):
            text = f"{self._bracketed()}{BINARY[operator]}{self._bracketed()}"
            return f"({text})" if operator == "gt" else text  # it would end a list of template arguments
        if self.peek().isdigit():
            return self.name()[0]
        raise Unknown

    def _bracketed(self) -> str:
        """Return an operand, in parentheses unless it is a plain parameter."""
        is_plain = self.peek(2) == "fp"
        expression = self.expression()
        return expression if is_plain else f"({expression})"

    def _call(self) -> str:
        function = self.expression()
        args = []
        while not self.take("E"):
            args.append(self.expression())
        return f"{function}({', '.join(args)})"


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


_MANGLED = re.compile(r"_?_Z[A-Za-z0-9_]")


@lru_cache(maxsize=1 << 14)
def demangle(name: str, *, parameters: bool = True) -> str:
    """Return the demangled name, or `name` itself if it is not mangled or not supported.

    Args:
        name: the mangled name.
        parameters: whether functions get their parameters and their result; perf prints names without.
    """
    if not _MANGLED.match(name) or len(name) > MAX_LENGTH:
        return name
    try:
        return Grammar(name).whole(parameters=parameters)
    except (Unknown, LookupError, ValueError, RecursionError):
        return name
