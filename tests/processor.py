"""What the processor that Numba compiles for can do: bounds on rounding errors follow from it."""

import platform
from collections.abc import Sequence
from typing import Any

import pytest
from numba.core.registry import cpu_target

ARM = platform.machine() in ("arm64", "aarch64")
X86 = platform.machine() in ("x86_64", "AMD64")
FEATURES = frozenset(cpu_target.target_context.codegen().magic_tuple()[2].split(","))
FUSED = ARM or "+fma" in FEATURES  # a b + c is rounded once


def arithmetic(values: Sequence[Any], *chosen: Any) -> list[Any]:
    """Parameters of which the chosen ones have kernels that are also tested as compiled for other processors."""
    return [pytest.param(value, marks=pytest.mark.arithmetic) if value in chosen else value for value in values]
