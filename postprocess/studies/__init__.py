"""What studies share, which hold many small solutions against a limit: one store, one schedule, one progress.

``schedule``: pieces of a study, computed by threads, by processes (``workers``, ``worker``) or by dask, each by one
thread, also of ``blas``; ``store``: a
folder that keeps each result; ``collect``: both of them, so that a study goes on where it was interrupted or where a
piece failed, and its progress; ``conduct``: a study from
what is asked to its Dataset; ``rates``: slopes fitted to errors, with their intervals; ``table`` and ``figure``: how
slopes and errors are shown. Used by ``mean_field``, ``depth`` and ``sweep``; a new study says what its pieces are, and
how one is computed.
"""
