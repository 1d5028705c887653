"""Sinkhorn's scaling of e^{<A x, y>}: potentials f, g with which the kernel e^{<A x, y> - f(x) - g(y)} is a coupling.

    f(x) = log int e^{<A x, y> - g(y)} dmu(y)        each row is a probability measure: exact, whatever g
    g(y) = log int e^{<A x, y> - f(x)} dmu(x)        each column: r = (right side) - g is solved to zero

Both are tilted sums of ``vlasov.tilting`` with other weights, at linear cost where these are. The tilted mean of a row
comes with f, and is what Sinkhorn attention is made of. Measures enter as weighted points about their mean, which
changes g by an affine function, and no kernel.

``sums``: the points and the two sums. ``parts``: sums with exponents too large for one grid. ``gaussian``: the
potentials of a Gaussian in closed form, where all others start. ``anderson``: past differences of g and r, from which
the next g follows (``kernels``: its loops). ``solve``: the iteration and its safeguard. ``warm``: g as it was on
earlier clouds, where a run's next velocity starts.
"""
