"""Numba's flags, each with its reason, in one place; and compilation that works without a writable cache.

A kernel that kernels call becomes LLVM code alone, which its callers take in and optimise with their own. Numba would
make it a function of Python too: optimise it, write machine code, wrap it, twice, for nobody; half of what it costs.
"""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

# GNU OpenMP spins while it waits: two contending thread pools then cost more than the work.
# It must stand before the first parallel call of the process.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numba
from llvmlite import binding
from numba.core import compiler
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack

from vlasov.checks import integer
from vlasov.compiling import CLOCK
from vlasov.errors import InputError

# Sums may be reordered and fused, so that loops vectorise; NaN and infinity keep their meaning (no nnan, no ninf).
SUMS = frozenset({"contract", "reassoc", "nsz"})
# Fused multiply-add only: for code that rounds on purpose and must not be reassociated.
EXACT = frozenset({"contract"})


class _Library(JITCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """Machine code, optimised once, as a whole. Numba would do so with each part, and then twice with all of it."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _InsideLibrary(_Library):
    """LLVM code as it was written down: its callers optimise it, and nobody else calls it."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:  # without machine code
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        return self.name, self._final_module.as_bitcode()

    def take(self, bitcode: bytes) -> None:
        """Become what was kept on disk."""
        self._final_module = binding.parse_bitcode(bitcode)
        self._finalize_final_module()

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """There is no place for it before a caller has machine code: see ``_Kernel.compile``."""


class _AloneLibrary(_InsideLibrary):
    """LLVM code that is optimised before its callers take it in."""

    def _optimize_final_module(self) -> None:
        _Library._optimize_final_module(self)


class _Choice:
    """Numba's own functions inside a kernel become what kernels do there, unless Python may call them too."""

    def __init__(self) -> None:
        self._class = _InsideLibrary

    def __call__(self, codegen: Any, name: str) -> Any:
        flags = ConfigStack.top_or_none()
        return (self._class if flags is not None and flags.no_cpython_wrapper else JITCodeLibrary)(codegen, name)

    def _unserialize(self, codegen: Any, state: Any) -> Any:  # the name that Numba asks for
        self._class = JITCodeLibrary
        try:
            return JITCodeLibrary._unserialize(codegen, state)
        finally:
            self._class = _InsideLibrary


class _Compiler(compiler.Compiler):  # type: ignore[misc]
    """Numba's compiler, with another library for the result."""

    library = _Library

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(function)


class _InsideCompiler(_Compiler):
    library = _InsideLibrary


class _AloneCompiler(_Compiler):
    library = _AloneLibrary


class _InsideResults(CompileResultCacheImpl):  # type: ignore[misc]
    """Keeps LLVM code on disk."""

    def rebuild(self, context: Any, payload: Any) -> Any:
        (name, bitcode), description, environment, signature, _, _, annotation, reload, environments = payload
        library = _InsideLibrary(context.codegen(), name)
        library.take(bitcode)
        return compiler.compile_result(
            typing_context=context.typing_context, target_context=context, library=library, fndesc=description,
            entry_point=context.get_executable(library, description, environment), environment=environment,
            type_annotation=annotation, signature=signature, objectmode=False, lifted=(), reload_init=reload,
            referenced_envs=environments,
        )  # fmt: skip

    def check_cachable(self, result: Any) -> bool:
        return not result.library.has_dynamic_globals

    def get_filename_base(self, name: str, flags: str) -> str:
        """Beside what Python calls."""
        return f"{super().get_filename_base(name, flags)}.inside"


class _Cache(FunctionCache):  # type: ignore[misc]
    """Found by name: Numba would look for edits in the kernel's own file alone, see ``_name``."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        super().__init__(function)
        self.name = name

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        return signature, codegen.magic_tuple(), self.name


class _InsideCache(_Cache):
    _impl_class = _InsideResults


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function of Python, which in kernels stands for its LLVM code."""

    def __init__(self, py_func: Callable[..., Any], *arguments: Any, alone: bool = False, **options: Any) -> None:
        super().__init__(py_func, *arguments, pipeline_class=_Compiler, **options)
        targets = {**self.targetoptions, "no_cpython_wrapper": True}
        self.inside = CPUDispatcher(py_func, self.locals, targets, _AloneCompiler if alone else _InsideCompiler)
        self.typingctx._remove_global(self)
        self.typingctx.insert_global(self, self._numba_type_)

    @property
    def _numba_type_(self) -> Any:
        return numba.types.Dispatcher(self.inside)

    def compile(self, signature: Any) -> Any:
        """Numba's, without the search for garbage, which takes an eighth of its time."""
        with global_compiler_lock:
            collects, known, codegen = gc.isenabled(), len(self.overloads), self.targetctx.codegen()
            usual, codegen._library_class = codegen._library_class, _Choice()
            gc.disable()
            try:
                entry = super().compile(signature)
            finally:
                codegen._library_class = usual
                if collects:
                    gc.enable()
            if len(self.overloads) > known:
                _set_environments(list(self.overloads.values())[-1].library)
            return entry


def _set_environments(library: Any) -> None:
    """Give kernels inside a kernel what they need to raise errors, where they still need it after optimisation."""
    for variable in library._final_module.global_variables:
        environment = lookup_environment(variable.name)
        if environment is not None and library.codegen._engine.get_global_value_address(variable.name):
            library.codegen.set_env(variable.name, environment)


def kernel(*, flags: frozenset[str] = EXACT, alone: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Numba's ``njit`` with our flags; compiled code is cached on disk where a folder can be written.

    ``error_model="numpy"`` turns division by zero into inf or NaN, as in NumPy, and lets loops vectorise. ``alone``:
    what other kernels take in is optimised before, for loops that the vectoriser would not know again among others.
    """
    options = {"nopython": True, "fastmath": set(flags), "error_model": "numpy", "nogil": True, "boundscheck": False}
    options["no_cfunc_wrapper"] = True  # only for functions that are handed over

    def compile_lazily(function: Callable[..., Any]) -> Any:
        name = _name(function)
        if "<locals>" in function.__qualname__:  # machine code is found by this name: closures must not share one
            function.__qualname__ += "_" + name[-16:]
        compiled = _Kernel(function, alone=alone, targetoptions=options)
        compiled.name = name  # Numba would draw one at random
        compiled._set_uuid(name)
        try:
            compiled._cache, compiled.inside._cache = _Cache(function, name), _InsideCache(function, name)
        except RuntimeError:  # Numba: no locator available, i.e. no folder for the cache
            CLOCK.kept = False
        return compiled

    return compile_lazily


def _name(function: Callable[..., Any]) -> str:
    """The same in every process until something is edited that the compiled code depends on, in whatever file.

    Where a function stands, with a hash of its code, of the state of its file, and of the constants and kernels that it
    reads, closes over, or finds in modules.
    """
    code = function.__code__
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    read = [function.__globals__.get(name) for name in code.co_names]
    inside = [getattr(value, name, None) for value in read if isinstance(value, ModuleType) for name in code.co_names]
    content = repr((_state(code.co_filename), code.co_code, code.co_consts, _constant((*closed, *read, *inside))))
    return f"{function.__module__}.{function.__qualname__}:{hashlib.sha256(content.encode()).hexdigest()}"


def _state(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:  # a cell of a notebook
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _constant(value: Any) -> Any:
    """What compiled code takes from a value: numbers and texts themselves, kernels by their names."""
    if isinstance(value, tuple):
        return tuple(map(_constant, value))
    return value if isinstance(value, int | float | str) else getattr(value, "name", "")


def set_threads(count: int | None) -> None:
    """Use ``count`` threads from now on; None: as many as NUMBA_NUM_THREADS allows, all cores if it is not set.

    Results do not depend on it, to the last bit. Small problems use one thread whatever is set.
    """
    most = numba.config.NUMBA_NUM_THREADS
    if count is not None and integer(count, "threads", least=1) > most:
        raise InputError(f"is {count} but this process may use {most}; set NUMBA_NUM_THREADS first", "threads")
    numba.set_num_threads(most if count is None else count)
