"""Kernels that other kernels call by address: what comes in many makes is compiled apart from what it is called by.

A kernel that takes another one in is compiled anew with each: a loop of six lines then costs as much as all around it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_KEPT: list[Any] = []  # machine code lives as long as somebody may have its address


def address(function: Any, *parameters: Any) -> int:
    """Where the machine code of a kernel is that takes arguments of these types and gives nothing back."""
    function.compile(types.void(*parameters))
    made = function.overloads[parameters]
    found: int = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    if not found:
        raise RuntimeError(f"there is no machine code of {function.__name__}")
    _KEPT.append(function)
    return found


@intrinsic
def call(typing_context, address, arguments):  # type: ignore[no-untyped-def]
    """Call the kernel at an address, which must have been asked for with the types of these arguments, a tuple."""
    parameters = tuple(arguments)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention, nothing = context.call_conv, types.none
        kind: ir.FunctionType = convention.get_function_type(nothing, parameters)
        kernel = builder.inttoptr(values[0], kind.as_pointer())
        given = cgutils.unpack_tuple(builder, values[1])
        status, _ = convention.call_function(builder, kernel, nothing, parameters, given)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(types.int64, arguments), generate
