"""What the processor that Numba compiles for can do: bounds on rounding errors follow from it."""

import platform

from numba.core.registry import cpu_target

ARM = platform.machine() in ("arm64", "aarch64")
X86 = platform.machine() in ("x86_64", "AMD64")
FEATURES = frozenset(cpu_target.target_context.codegen().magic_tuple()[2].split(","))
FUSED = ARM or "+fma" in FEATURES  # a b + c is rounded once
