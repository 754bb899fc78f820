"""Compiles traceconv/kernel when the package is built, if there is a C compiler; if not, the package works without."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_KERNEL = Path("traceconv", "kernel")
# What Cython needs for views of memory, once: it is most of each module otherwise.
_SHARED = ".".join((*_KERNEL.parts, "_cyutility"))


class KernelHook(BuildHookInterface):
    """Puts the extension modules beside their sources, and into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is put together, also for an editable installation."""
        del version
        root = Path(self.root)
        for old in (*root.joinpath(_KERNEL).glob("*.so"), *root.joinpath(_KERNEL).glob("*.pyd")):
            if f".{sys.implementation.cache_tag}-" in old.name or old.suffix == ".pyd":
                old.unlink()
        try:
            built = _compile(root)
        except Exception as error:  # whatever goes wrong with a compiler, the package works without
            self.app.display_warning(f"traceconv's kernel was not compiled, so conversions will be slower: {error}")
            return
        if not built:
            return
        build_data["artifacts"] += [path.relative_to(root).as_posix() for path in built]
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def _compile(root: Path) -> list[Path]:
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    sources = sorted(path for path in root.joinpath(_KERNEL).glob("*.py") if path.name != "__init__.py")
    flags = [] if sys.platform == "win32" else ["-O3", "-g0", "-fno-asynchronous-unwind-tables"]
    linking = ["-s"] if sys.platform == "linux" else []
    if not sources:
        return []
    with tempfile.TemporaryDirectory() as folder:
        extensions = [
            Extension(
                ".".join([*_KERNEL.parts, path.stem]),
                [_marked(path, folder)],
                extra_compile_args=flags,
                extra_link_args=linking,
            )
            for path in sources
        ]
        modules = cythonize(extensions, language_level=3, quiet=True, shared_utility_qualified_name=_SHARED)
        shared = str(Path(folder, "_cyutility.c"))
        subprocess.run([sys.executable, "-m", "cython", f"--generate-shared={shared}"], check=True)
        small = [flag.replace("-O3", "-Os") for flag in flags]  # no loop is in it
        modules.append(Extension(_SHARED, [shared], extra_compile_args=small, extra_link_args=linking))
        distribution = Distribution({"name": "traceconv", "ext_modules": modules})
        command = distribution.get_command_obj("build_ext")
        command.build_lib, command.build_temp = folder, folder
        command.parallel = os.cpu_count()
        command.ensure_finalized()
        command.run()
        built = []
        for output in map(Path, command.get_outputs()):
            target = root / _KERNEL / output.name
            target.write_bytes(output.read_bytes())
            built.append(target)
    return built


def _marked(source: Path, folder: str) -> str:
    """A copy of a module that says what it was compiled from, so that traceconv notices when the source has changed."""
    text = source.read_bytes()
    copy = Path(folder, source.name)
    copy.write_bytes(text + b"\nSOURCE_CRC32 = %d\n" % zlib.crc32(text))
    return str(copy)
