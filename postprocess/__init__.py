"""What is made of solutions: figures, distances, comparisons, reports.

``compare``, ``mean_field``, ``depth``, ``sweep``, ``energies``, ``on_grid``, ``wasserstein``, ``figures`` and
``movie`` are the fronts, which users and the command line call; ``studies``, ``transport``, ``drawing``, ``moments``
and ``stability`` serve them; ``equations`` says how each kind of attention moves a token. Each is imported by itself
(``from vlasov.postprocess import figures``), so that this room costs nothing until it is used.
"""
