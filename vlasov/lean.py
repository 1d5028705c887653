"""Kernels that call each other, compiled once: a leaner way through Numba's compiler, for versions that were checked.

Numba makes of every function that a kernel calls a function of Python too: optimises it, writes machine code, wraps it,
twice, for nobody; and optimises it again within each caller. That is half of what compilation costs. Here

- a kernel that kernels call becomes LLVM code alone (_InsideLibrary), kept on disk as such; its callers take it in;
- what Python calls is optimised once, as a whole (_Library); Numba would do so with each part, then twice with all;
- Numba's own functions in a kernel (slices, norms) become what kernels do there (_Choice);
- passes that change nothing in kernels are left out, flags are compared at once, and whole numbers that somebody wrote
  down make no kernels of their own;
- no search for garbage, which takes an eighth of the time, interrupts a compilation.

All of that is done in subclasses that override methods which Numba does not document. Other versions, or one that lacks
a name that is needed here, compile the same kernels by ``numba.njit``: see ``vlasov.jit``. Results do not differ.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import binding
from numba.core import compiler, typed_passes, types, untyped_passes
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack

from vlasov.cache import Cache, keep

# From, and before. Tried: 0.62.1, 0.65.1, 0.68.1; with all of Numba's passes also 0.63.1, 0.64.0, 0.66.0, 0.67.0. 0.61
# has another optimiser.
CHECKED = ((0, 62), (0, 69))
_NEEDED = (
    (JITCodeLibrary, "_optimize_functions _optimize_final_module _finalize_final_module _finalize_dynamic_globals"),
    (JITCodeLibrary, "_unserialize serialize_using_object_code enable_object_caching"),
    (JITCPUCodegen, "_module_pass_manager _pass_builder set_env"),
    (CompileResultCacheImpl, "rebuild check_cachable get_filename_base"),
    (CPUDispatcher, "_numba_type_ compile get_call_template _reduce_states _rebuild _set_uuid"),
    (_FunctionCompiler, "_customize_flags"),
    (compiler, "compile_result CompilerBase PassManager Flags"),
)


def serves() -> bool:
    """Whether this Numba is one of those."""
    version = tuple(int(part) if part.isdigit() else -1 for part in numba.__version__.split(".")[:2])
    there = all(hasattr(place, name) for place, names in _NEEDED for name in names.split())
    return CHECKED[0] <= version < CHECKED[1] and there


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
        """There is no place for it before a caller has machine code: see ``Kernel.compile``."""


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


_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.RewriteSemanticConstants,
    untyped_passes.DeadBranchPrune,
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)


class _Flags(compiler.Flags):  # type: ignore[misc]
    """Numba's, which it compares with each other for a fifteenth of the time that it compiles."""

    def values(self) -> dict[str, Any]:
        return {**_DEFAULTS, **self._values}


_DEFAULTS = {name: option.default for name, option in compiler.Flags.options.items()}


class _Compiler(compiler.CompilerBase):  # type: ignore[misc]
    """Numba's compiler, with another library for the result, and without passes that change nothing in our kernels.

    They have no closures, comprehensions, "with", loops over tuples of unlike things, nor expressions of whole arrays
    that should be fused. What Numba does not support fails in another pass, in other words.
    """

    library = _Library

    def define_pipelines(self) -> list[Any]:
        passes = compiler.PassManager("nopython")
        for step in _PASSES:
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]

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


class _InsideCache(Cache):
    _impl_class = _InsideResults


class _Inside(CPUDispatcher):  # type: ignore[misc]
    """What kernels call; Numba would compile it anew for each whole number that somebody writes down."""

    def get_call_template(self, parameters: Any, named: Any) -> Any:
        plain = [kind.literal_type if isinstance(kind, types.IntegerLiteral) else kind for kind in parameters]
        return super().get_call_template(tuple(plain), named)


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function of Python, which in kernels stands for its LLVM code."""

    def __init__(self, function: Callable[..., Any], targets: dict[str, Any], name: str, *, alone: bool) -> None:
        super().__init__(function, {}, targets, _Compiler)
        self.name, self._alone = name, alone
        inner = _AloneCompiler if alone else _InsideCompiler
        self.inside = _Inside(function, {}, {**targets, "no_cpython_wrapper": True}, inner)
        for dispatcher in (self, self.inside):
            dispatcher._compiler._customize_flags = _Flags
        keep(self, name)
        keep(self.inside, name, _InsideCache)
        self.typingctx._remove_global(self)
        self.typingctx.insert_global(self, self._numba_type_)

    def _reduce_states(self) -> dict[str, Any]:  # for pickle
        return {"function": self.py_func, "targets": self.targetoptions, "name": self.name, "alone": self._alone}

    @classmethod
    def _rebuild(cls, **states: Any) -> Kernel:
        return cls(**states)

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.inside)

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
