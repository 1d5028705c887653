"""Compiled helpers that several rooms need, and that know nothing of measures: what NumPy and Numba do not give.

    exponential    2^x and e^x without calls and branches, so that loops over them vectorise
    vectors        a little language over LLVM: spread a point to p^d nodes, gather p^d nodes at a point
    dipoles        a word more of it, for points that carry a charge and a dipole
    blocks         products of blocks of matrices, in its words
    products       products of matrices, and A x for many x, whose bits do not depend on the number of threads
    blas           one thread of BLAS, whose bits depend on how many there are
    pointers       kernels that kernels call by address, compiled apart from them
    memory         arrays that kernels ask for, each kind compiled once
    threads        one kernel in several threads of Python, each with its share
    views          arrays as kernels want them, so that each is compiled once
    workspace      scratch memory that repeated calls share

``tilting``, measures and solvers call them; how kernels are compiled is said in ``vlasov.jit``.
"""
