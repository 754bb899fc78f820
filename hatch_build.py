"""Compile the Cython modules when the package is built, where there is a C compiler; it works without them, too."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PACKAGE = "traceconv"
_SHARED = "traceconv._cyutility"
#: Modules that are compiled for size: Chrome JSON is written an eighth slower for it.
_SMALL = ("_decode", "_json_rows", "_lines", "_nesting", "_strings")
#: Leaves out what only debuggers and other libraries would use, and space between loops.
_LEAN = (
    *("-g0", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-fvisibility=hidden", "-fno-plt"),
    *("-fno-align-functions", "-fno-align-loops", "-fno-align-jumps"),
)
#: Puts fewer copies of small functions into others, and copies less code to do it earlier or later: a tenth of the
#: size, and measurably no slower.
_FEW_COPIES = (
    *("--param=inline-unit-growth=5", "--param=early-inlining-insns=2", "--param=max-inline-insns-single=40"),
    *("-fno-schedule-insns2", "-fno-tree-pre", "-fno-tree-dominator-opts"),
)
#: Does without what makes calls of Python and its integers faster: few calls of the kernels deal with either.
_PLAIN = [(f"CYTHON_{name}", "0") for name in ("USE_PYLONG_INTERNALS", "FAST_THREAD_STATE", "UNPACK_METHODS")]
_INCLUDE = re.compile(rb'^include "(.+)"', re.MULTILINE)


class KernelHook(BuildHookInterface):
    """The step of a build that puts the extension modules beside their sources, and into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the modules to the wheel, compiled anew if need be; also for an editable installation."""
        del version
        root = Path(self.root)
        try:
            built = _still_good(root)
            if not built:
                for old in (*root.joinpath(_PACKAGE).rglob("*.so"), *root.joinpath(_PACKAGE).rglob("*.pyd")):
                    if f".{sys.implementation.cache_tag}-" in old.name or old.suffix == ".pyd":
                        old.unlink()
                built = _compile(root)
        except Exception as error:  # whatever goes wrong with a compiler, the package works without
            self.app.display_warning(f"traceconv's kernel was not compiled, so conversions will be slower: {error}")
            return
        build_data["artifacts"] += [path.relative_to(root).as_posix() for path in built]
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def _still_good(root: Path) -> list[Path]:
    """Return what was compiled for this Python before; nothing where a module is missing or of another origin."""
    package = root / _PACKAGE
    sources = list(package.rglob("*.pyx"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    built = [path.with_name(path.stem + suffix) for path in (root.joinpath(*_SHARED.split(".")), *sources)]
    if not all(path.exists() for path in built):
        return []
    same = (_origin(source, root) in module.read_bytes() for source, module in zip(sources, built[1:], strict=True))
    return built if all(same) else []


def _origin(source: Path, root: Path) -> bytes:
    """Return the text in a compiled module that says what it was compiled from: its source, Cython and this file."""
    from Cython import __version__

    how = zlib.crc32(Path(__file__).read_bytes())
    return b"compiled from %d by Cython %s and %d" % (_checksum(source, root), __version__.encode(), how)


def _checksum(source: Path, root: Path) -> int:
    """Return the CRC-32 of a source and of what it includes, as traceconv.kernel does."""
    text = source.read_bytes()
    return zlib.crc32(text + b"".join(root.joinpath(os.fsdecode(path)).read_bytes() for path in _INCLUDE.findall(text)))


def _compile(root: Path) -> list[Path]:
    """Compile all modules, and return them. They have nothing for debuggers, which is nine tenths of their size."""
    from Cython.Build import cythonize
    from Cython.Compiler import Options
    from setuptools import Distribution, Extension

    Options.docstrings = False  # the sources have them
    # Nobody pickles what is compiled, or asks for signatures: a fifth of the size.
    Options.get_directive_defaults().update(auto_pickle=False, binding=False)
    root = root.resolve()
    sources = sorted(root.joinpath(_PACKAGE).rglob("*.pyx"))
    # -O3 is a tenth larger than -O2 and not measurably faster.
    flags = [] if sys.platform == "win32" else ["-O2", *_LEAN, *_FEW_COPIES]
    small = [] if sys.platform == "win32" else ["-Os", *_LEAN]
    links = ["-s", "-Wl,-z,noseparate-code"] if sys.platform == "linux" else []
    with tempfile.TemporaryDirectory() as folder:
        extensions = [
            Extension(
                ".".join(path.relative_to(root).with_suffix("").parts),
                [_marked(path, root, folder)],
                define_macros=_PLAIN,
                extra_compile_args=small if path.stem in _SMALL else flags,
                extra_link_args=links,
            )
            for path in sources
        ]
        # What Cython itself adds is in a module that all share: it is most of the size of a small one.
        source = str(Path(folder, "_cyutility.c"))
        shared = Extension(_SHARED, [source], define_macros=_PLAIN, extra_compile_args=small, extra_link_args=links)
        extensions.append(shared)
        modules = cythonize(
            extensions,
            include_path=[str(root)],
            shared_utility_qualified_name=_SHARED,
            language_level=3,
            quiet=True,
        )
        distribution = Distribution({"name": _PACKAGE, "ext_modules": modules})
        command = distribution.get_command_obj("build_ext")
        command.build_lib, command.build_temp = folder, folder
        command.parallel = os.cpu_count()
        command.ensure_finalized()
        command.run()
        built = []
        for output in map(Path, command.get_outputs()):
            target = root / output.relative_to(folder)
            target.write_bytes(output.read_bytes())
            built.append(target)
    return built


def _marked(source: Path, root: Path, folder: str) -> str:
    """Write a copy of a source whose module states what it was compiled from; return its path.

    SOURCE_CRC32 is for traceconv, which notices with it when the source has changed. The text in C is for
    `_still_good`, which cannot import the module: what that needs is not installed while the package is built.
    """
    checksum, origin = _checksum(source, root), _origin(source, root).decode()
    copy = Path(folder, source.name)
    copy.write_bytes(
        source.read_bytes()
        + b"\nSOURCE_CRC32 = %d\n" % checksum
        + f'cdef extern from *:\n    """\n    const char traceconv_origin[] = "{origin}";\n    """\n'.encode()
    )
    return str(copy)
