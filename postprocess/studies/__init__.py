"""Studies: many small computations on a grid of parameters, joined in one Dataset.

A study is a subclass of ``study.Study``: options, axes, ``measure``. The rest of this package does what all studies
share: run them (``run``, ``schedule``, ``store``), fit slopes (``slopes``), show them (``show``), and give them their
function (``front``). ``vlasov.postprocess.registry`` lists them.
"""
