"""Names of C++ functions as they stand in the source, from what the compiler has made of them.

    _ZN2at6native4gemmIfLi4EEEvPT_i   ->   void at::native::gemm<float, 4>(float*, int)

The grammar is that of the Itanium C++ ABI (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling), which nvcc and
all compilers on Linux and macOS follow; the text is that of c++filt. What the names of kernels hold is understood:
templates with packs and values, lambdas, local and unnamed types, pointers to functions and members, simple
expressions. For anything else, and for names that are no such names, `demangle` gives back what it got.

A type is kept as the text before and after the place where a name or a `*` goes: `void (` and `)(int)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

_MANGLED = re.compile(r"_?_Z[A-Za-z0-9_]")
#: Substitutions can make a short name huge.
_MAX_LENGTH = 1 << 15
_MAX_STEPS = 5000

_BUILTIN = {
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
_STANDARD = {
    "a": "std::allocator",
    "b": "std::basic_string",
    "s": "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
    "i": "std::basic_istream<char, std::char_traits<char> >",
    "o": "std::basic_ostream<char, std::char_traits<char> >",
    "d": "std::basic_iostream<char, std::char_traits<char> >",
}
_UNARY = {"ps": "+", "ng": "-", "ad": "&", "de": "*", "co": "~", "nt": "!", "pp": "++", "mm": "--"}
_BINARY = {
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
_OTHER_OPERATORS = {"nw": " new", "na": " new[]", "dl": " delete", "da": " delete[]", "cl": "()", "ix": "[]"}
_OPERATORS = _UNARY | _BINARY | _OTHER_OPERATORS
_SUFFIXES = {"int": "", "unsigned int": "u", "long": "l", "unsigned long": "ul", "long long": "ll"}
_SUFFIXES["unsigned long long"] = "ull"


class _Unknown(Exception):
    """The name holds something that is not understood."""


class _Type(NamedTuple):
    """The text of a type before and after its declarator; `wraps` if a declarator needs parentheses."""

    before: str
    after: str = ""
    wraps: bool = False

    def __str__(self) -> str:
        return self.before + self.after

    def declared(self, mark: str) -> _Type:
        """A pointer or reference to it."""
        if self.wraps:
            gap = "" if self.before.endswith((" ", "(", "*", "&")) else " "
            return _Type(f"{self.before}{gap}({mark}", f"){self.after}")
        return _Type(self.before + mark, self.after)


#: A parameter pack stands for several types or none.
_Arg = _Type | list["_Arg"]


@lru_cache(maxsize=1 << 14)
def demangle(name: str) -> str:
    """The name as in the source, or `name` itself where that is not known."""
    if not _MANGLED.match(name) or len(name) > _MAX_LENGTH:
        return name
    try:
        return _Demangler(name).whole()
    except (_Unknown, LookupError, ValueError, RecursionError):
        return name


class _Demangler:
    """Reads one name from left to right.

    Attributes:
        _known: what `S_`, `S0_`, ... refer to, and where it stands if template parameters are in it: these can mean
            something else where it is referred to. -1 otherwise.
        _args: what `T_`, `T0_`, ... refer to.
        _pack: which element of a pack is meant while a pattern is expanded, None outside of one.
    """

    def __init__(self, name: str) -> None:
        self._text = name
        self._at = name.index("_Z") + 2
        self._known: list[tuple[_Type, int]] = []
        self._budget = _MAX_STEPS
        self._uses = 0  # of template parameters so far
        self._args: list[_Arg] = []
        self._pack: int | None = None
        self._pack_size: int | None = None
        self._lambdas = 0

    def whole(self) -> str:
        found = self._encoding()
        rest = self._text[self._at :]
        if rest and not rest.startswith("."):
            raise _Unknown
        return f"{found} [clone {rest}]" if rest else found

    # -- characters -------------------------------------------------------------------------------------------

    def _peek(self, size: int = 1) -> str:
        return self._text[self._at : self._at + size]

    def _take(self, *words: str) -> str:
        """The first of the words that comes next, "" for none."""
        for word in words:
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return word
        return ""

    def _need(self, word: str) -> None:
        if not self._take(word):
            raise _Unknown

    def _match(self, pattern: str) -> str:
        found = re.compile(pattern).match(self._text, self._at)
        if found is None:
            raise _Unknown
        self._at = found.end()
        return found[0]

    def _index(self) -> int:
        """_ is 0, 0_ is 1, and so on."""
        digits = self._match(r"\d{0,4}_")[:-1]
        return int(digits) + 1 if digits else 0

    def _keep(self, found: _Type, at: int = -1) -> _Type:
        if len(found.before) + len(found.after) > _MAX_LENGTH:
            raise _Unknown
        self._known.append((found, at))
        return found

    # -- functions ----------------------------------------------------------------------------------------------

    def _encoding(self, with_result: bool = True) -> str:
        """A function with its parameters, or a variable."""
        name, is_template, ending = self._name(of_function=True)
        if self._peek() in ("", "E", "."):
            return name
        result = self._type() if is_template else None
        parameters = self._parameters()
        text = f"{name}({parameters}){ending}"
        if result is None or not with_result:
            return text
        return f"{result.before}{'' if result.after else ' '}{text}{result.after}"

    def _parameters(self) -> str:
        """Types up to the end of the function."""
        found: list[str] = []
        while self._peek() not in ("", "E", ".") and not re.match("[RO]E", self._peek(2)):
            found += _flat(self._type_or_pack())
        return "" if found == ["void"] else ", ".join(found)

    # -- names ----------------------------------------------------------------------------------------------------

    def _name(self, of_function: bool = False) -> tuple[str, bool, str]:
        """A name, whether template arguments end it, and the qualifiers of a member function."""
        if self._take("N"):
            return self._nested(of_function)
        if self._take("Z"):
            return self._local(of_function)
        if self._peek() == "S" and self._peek(2) != "St":
            found = str(self._substitution())
        else:
            found = "std::" if self._take("St") else ""
            self._take("L")
            found += self._unqualified("")
            if self._peek() == "I":
                self._keep(_Type(found))
        if self._peek() != "I":
            return found, False, ""
        return _before_args(found) + self._template_args(of_function), True, ""

    def _nested(self, of_function: bool) -> tuple[str, bool, str]:
        """A name in namespaces and classes."""
        qualifiers = self._match("r?V?K?")
        ending = "".join(word for letter, word in (("K", " const"), ("V", " volatile")) if letter in qualifiers)
        ending += {"R": " &", "O": " &&", "": ""}[self._take("R", "O")]
        found, is_template, is_known, returns = "", False, False, True
        while not self._take("E"):
            is_template, is_known = False, True
            if self._take("St"):
                found, is_known = "std", False
            elif self._peek() == "S":
                found, is_known = str(self._substitution()), False
            elif self._peek() == "I":
                found = _before_args(found) + self._template_args(of_function)
                is_template = True
            elif self._peek() == "T" or self._peek(2) in ("Dt", "DT"):
                found = str(self._type(keep=False))
            elif self._take("M"):
                continue
            else:
                self._take("L")
                returns = self._peek() not in ("C", "D") and self._peek(2) != "cv"
                found = f"{found}::{self._unqualified(found)}" if found else self._unqualified("")
            if is_known:
                self._keep(_Type(found))
        if is_known:
            self._known.pop()  # as a whole it is a type, kept by who reads types, or a function, which never is
        return found, is_template and returns, ending

    def _local(self, of_function: bool) -> tuple[str, bool, str]:
        """Something inside a function."""
        args = self._args
        inside = self._encoding(with_result=False)
        self._args = args
        self._need("E")
        if self._take("s"):
            name, is_template, ending = "string literal", False, ""
        else:
            if self._take("d"):
                self._index()
            name, is_template, ending = self._name(of_function)
        if re.match(r"_\d|__\d", self._peek(3)):
            self._match(r"__\d+_|_\d")
        return f"{inside}::{name}", is_template, ending

    def _unqualified(self, scope: str) -> str:
        """One component of a name; `scope` is what stands before it."""
        letter = self._peek()
        if letter.isdigit():
            found = self._source_name()
        elif letter == "C" or (letter == "D" and self._peek(2)[1:] in "01245"):
            self._match(r"CI?[1-5]|D[0-5]")
            found = ("~" if letter == "D" else "") + _last_component(scope)
        elif self._take("Ut"):
            found = f"{{unnamed type#{self._index() + 1}}}"
        elif self._take("Ul"):
            self._lambdas += 1
            parameters = self._parameters()
            self._lambdas -= 1
            self._need("E")
            found = f"{{lambda({parameters})#{self._index() + 1}}}"
        elif self._take("cv"):
            found = f"operator {self._type()}"
        elif self._take("li"):
            found = f'operator"" {self._source_name()}'
        else:
            found = f"operator{_OPERATORS[self._match('[a-z][a-zA-Z]')]}" if self._peek(2) in _OPERATORS else ""
        while found and self._take("B"):
            found += f"[abi:{self._source_name()}]"
        if not found:
            raise _Unknown
        return found

    def _source_name(self) -> str:
        size = int(self._match(r"\d{1,5}"))
        found = self._peek(size)
        if len(found) < size or not size:
            raise _Unknown
        self._at += size
        return "(anonymous namespace)" if found.startswith("_GLOBAL__N_") else found

    # -- types ------------------------------------------------------------------------------------------------------

    def _type_or_pack(self) -> _Arg:
        return self._expansion(self._type) if self._take("Dp") else self._type()

    def _type(self, keep: bool = True) -> _Type:
        """One type; `keep` if a later part of the name may refer to it."""
        start, uses = self._at, self._uses
        self._budget -= 1
        found, is_new = self._new_type()
        if start == self._at or self._budget < 0:
            raise _Unknown
        return self._keep(found, start if self._uses > uses else -1) if is_new and keep else found

    def _new_type(self) -> tuple[_Type, bool]:
        """A type, and whether it can be referred to later."""
        letter = self._peek()
        if letter in "rVK" and letter:
            return self._qualified(), True
        if mark := {"P": "*", "R": "&", "O": "&&"}.get(letter, ""):
            self._at += 1
            return _collapsed(self._type(), mark), True
        if letter == "F":
            return self._function(), True
        if letter == "A":
            return self._array(), True
        if letter == "M":
            return self._member_pointer(), True
        if letter == "T":
            return self._parameter_type()
        if letter == "S" and self._peek(2) != "St":
            return self._substituted()
        if letter == "D" or letter == "u" or letter in _BUILTIN:
            return self._builtin()
        return _Type(self._name()[0]), True

    def _qualified(self) -> _Type:
        letters = self._match("r?V?K?")
        words = "".join(word for letter, word in (("K", " const"), ("V", " volatile")) if letter in letters)
        inner = self._type()
        is_function = inner.wraps and not inner.after.startswith(" [")
        if is_function:
            return _Type(inner.before, inner.after + words, True)
        return _Type(inner.before + words, inner.after, inner.wraps)

    def _function(self) -> _Type:
        self._need("F")
        self._take("Y")
        result = self._type()
        parameters = self._parameters()
        ending = {"R": " &", "O": " &&", "": ""}[self._take("R", "O")]
        self._need("E")
        gap = "" if result.after else " "
        return _Type(f"{result.before}{gap}", f"({parameters}){ending}{result.after}", True)

    def _array(self) -> _Type:
        self._need("A")
        size = self._match(r"\d*") if self._peek().isdigit() or self._peek() == "_" else self._expression()
        self._need("_")
        inner = self._type()
        return _Type(inner.before, f" [{size}]{inner.after.lstrip() if inner.wraps else inner.after}", True)

    def _member_pointer(self) -> _Type:
        self._need("M")
        of_class = self._type()
        inner = self._type()
        return inner.declared(f"{of_class}::*") if inner.wraps else inner.declared(f" {of_class}::*")

    def _parameter_type(self) -> tuple[_Type, bool]:
        found = self._template_parameter()
        if self._peek() == "I":
            self._keep(found)
            return _Type(f"{found}{self._template_args(False)}"), True
        return found, True

    def _substituted(self) -> tuple[_Type, bool]:
        found = self._substitution()
        if self._peek() == "I":
            return _Type(f"{found}{self._template_args(False)}"), True
        return found, False

    def _builtin(self) -> tuple[_Type, bool]:
        if self._take("u"):
            return _Type(self._source_name()), True
        if self._take("Dt", "DT"):
            inner = self._expression()
            self._need("E")
            return _Type(f"decltype ({inner})"), True
        if self._take("Do"):
            found = self._function()
            return _Type(found.before, f"{found.after} noexcept", True), True
        if self._take("Dv"):
            size = self._match(r"\d+")
            self._need("_")
            return _Type(f"{self._type()} __vector({size})"), True
        if self._take("DF16b"):
            return _Type("__bf16"), False
        if self._take("DF16_"):
            return _Type("_Float16"), False
        return _Type(_BUILTIN[self._take(*_BUILTIN)]), False

    def _substitution(self) -> _Type:
        self._need("S")
        if self._peek() in _STANDARD and self._peek():
            return _Type(_STANDARD[self._take(*_STANDARD)])
        digits = self._match("[0-9A-Z]{0,4}_")[:-1]
        found, at = self._known[int(digits, 36) + 1 if digits else 0]
        if at < 0:
            return found
        here, known = self._at, len(self._known)
        self._at = at
        found = self._type()
        self._at = here
        del self._known[known:]
        return found

    # -- templates --------------------------------------------------------------------------------------------------

    def _template_args(self, of_function: bool) -> str:
        """<...>; those of the function are what T_ stands for from here on."""
        self._need("I")
        args: list[_Arg] = []
        if of_function:
            self._args = args
        while not self._take("E"):
            args.append(self._template_arg())
        text = ", ".join(_flat(args))
        if len(text) > _MAX_LENGTH:
            raise _Unknown
        return f"<{text} >" if text.endswith(">") else f"<{text}>"

    def _template_arg(self) -> _Arg:
        if self._peek() == "L":
            return _Type(self._literal())
        if self._take("X"):
            found: _Arg
            found = self._expansion(self._value) if self._take("sp") else self._value()
            self._need("E")
            return found
        if self._take("J"):
            pack: list[_Arg] = []
            while not self._take("E"):
                pack.append(self._template_arg())
            return pack
        return self._type_or_pack()

    def _value(self) -> _Type:
        return _Type(self._expression())

    def _template_parameter(self) -> _Type:
        self._need("T")
        index = self._index()
        self._uses += 1
        if self._lambdas:
            return _Type(f"auto:{index + 1}")
        if index >= len(self._args):
            raise _Unknown
        found = self._args[index]
        if isinstance(found, _Type):
            return found
        if self._pack is None:
            return _Type(", ".join(_flat(found)))
        self._pack_size = len(found)
        if self._pack >= len(found):
            return _Type("")
        (one,) = found[self._pack : self._pack + 1]
        return one if isinstance(one, _Type) else _Type(", ".join(_flat(one)))

    def _expansion(self, read: Callable[[], _Type]) -> _Arg:
        """A pattern, once for each element of the pack in it."""
        outer, start, known = (self._pack, self._pack_size), self._at, None
        found: list[_Arg] = []
        number = 0
        while True:
            self._at, self._pack, self._pack_size = start, number, None
            found.append(read())
            if known is None:
                known = len(self._known)
            del self._known[known:]
            number += 1
            if self._pack_size is None or number >= self._pack_size:
                break
        if self._pack_size == 0:
            found = []
        self._pack, self._pack_size = outer
        return found

    def _literal(self) -> str:
        """A value: 4, true, 3ul, (Mode)1."""
        self._need("L")
        if self._take("_Z", "Z"):
            args, self._args = self._args, []
            found, is_template, _ = self._name(of_function=True)
            if self._peek() != "E":  # a function, of which the name is enough
                _ = self._type() if is_template else None
                self._parameters()
            self._args = args
            self._need("E")
            return found
        kind = str(self._type())
        if kind == "decltype(nullptr)":
            self._match("0?E")
            return f"({kind})0"
        value = self._match("n?[0-9a-f]*E")[:-1].replace("n", "-", 1)
        if kind == "bool" and value in ("0", "1"):
            return "true" if value == "1" else "false"
        if kind in _SUFFIXES:
            return value + _SUFFIXES[kind]
        return f"({kind}){f'[{value}]' if kind in ('float', 'double') else value}"

    # -- expressions ------------------------------------------------------------------------------------------------

    def _expression(self) -> str:
        if self._peek() == "L":
            return self._literal()
        if self._peek() == "T":
            return str(self._template_parameter())
        if self._take("fpT"):
            return "this"
        if self._take("fp"):
            self._match("[rVK]*")
            return f"{{parm#{self._index() + 1}}}"
        if self._take("st"):
            return f"sizeof ({self._type()})"
        if self._take("sz"):
            return f"sizeof ({self._expression()})"
        if self._take("sZ"):
            return f"sizeof...({self._expression()})"
        if self._take("cv"):
            return f"({self._type()}){self._bracketed()}"
        if self._take("cl"):
            return self._call()
        if self._take("dt"):
            return f"{self._bracketed()}.{self._unqualified('')}"
        if self._take("sr"):
            scope = self._type()
            name = self._unqualified("")
            return f"{scope}::{name}" + (self._template_args(False) if self._peek() == "I" else "")
        if self._peek(4) == "adL_":
            self._at += 2
            return f"&{self._literal()}"
        if operator := self._take(*_UNARY):
            return _UNARY[operator] + self._bracketed()
        if operator := self._take(*_BINARY):
            text = f"{self._bracketed()}{_BINARY[operator]}{self._bracketed()}"
            return f"({text})" if operator == "gt" else text  # as an argument it would end the list
        if self._peek().isdigit():
            return self._name()[0]
        raise _Unknown

    def _bracketed(self) -> str:
        """An operand; those that are no plain parameter stand in parentheses."""
        is_plain = self._peek(2) == "fp"
        found = self._expression()
        return found if is_plain else f"({found})"

    def _call(self) -> str:
        function = self._expression()
        args = []
        while not self._take("E"):
            args.append(self._expression())
        return f"{function}({', '.join(args)})"


def _flat(arg: _Arg) -> list[str]:
    """The texts of all types in nested packs."""
    if isinstance(arg, _Type):
        return [str(arg)] if str(arg) else []
    return [text for one in arg for text in _flat(one)]


def _collapsed(inner: _Type, mark: str) -> _Type:
    """A pointer or reference; a reference to a reference is one."""
    end = inner.before
    if mark != "*" and end.endswith("&"):
        return _Type(end.removesuffix("&"), inner.after) if mark == "&" and end.endswith("&&") else inner
    return inner.declared(mark)


def _before_args(name: str) -> str:
    """operator<< <int>, not operator<<<int>."""
    return f"{name} " if name.endswith("<") else name


def _last_component(scope: str) -> str:
    """The name of a class without namespaces and template arguments, for its constructors."""
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
