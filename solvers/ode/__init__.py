"""Ordinary differential equations, for every solver that moves tokens, moments or frames.

``integrate``: steps of an explicit method over a segment, blow-ups seen and told. ``runge_kutta``: DOP853 on a cloud
of tokens, with its tableau and plan of memory in ``dop853`` and its loops in ``runge_kutta_kernels``. ``clouds``:
tokens as an ODE. ``coordinates``: those in which they are integrated; ``rescaling``: Phi of z = Phi^{-1} x. ``stiff``:
stiffness seen, and the method that takes over. Called by ``solvers.gaussian``, ``particles``, ``replicas`` and
``finite_volume``.
"""
