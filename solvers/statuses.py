"""How runs may end, in words, and where the code words what a run says against itself: for pages, reports and tests."""

#: Statuses of a run.
OF_RUNS = {
    "completed": "The run reached its horizon.",
    "blow-up": "The measure leaves every ball in finite time, which is physics and no failure.",
    "stopped": "The run ended before its horizon, for another reason than a blow-up.",
}
#: And of each trajectory of ``vl.covariances``.
OF_GAUSSIANS = OF_RUNS | {
    "diverging": "The covariance has grown by the factor `most_growth` with no blow-up ahead.",
    "stopped": "The trajectory needs more than `max_steps`, or its steps are lost beside t.",
}
#: And of each run of a sweep.
OF_SWEEPS = OF_RUNS | {
    "failed": "The run raised an error, which stands in `reason`; the other runs went on.",
    "not run": "The sweep was interrupted before this run's turn.",
}

#: By module below ``vlasov``: who speaks, and in which functions and constants.
ADVISERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "solvers.accuracy": ("all solvers", ("doubt", "_loudest")),
    "solvers.advice": (
        "particles, gaussian, layers",
        ("AT_ORIGIN", "FIRST_TOKENS", "of_steps", "of_sampling", "trusted"),
    ),
    "solvers.references": ("particles, layers", ("_ANOTHER", "_judge", "_as_nodes")),
    "solvers.particles": ("particles", ("run",)),
    "solvers.layer_errors": ("layers", ("tell",)),
    "solvers.finite_volume.state": ("finite-volume", ("cause",)),
    "solvers.finite_volume.velocity": ("finite-volume", ("cause",)),
    "solvers.finite_volume.judge": (
        "finite-volume",
        ("_COARSE", "_OPEN", "_FEW_SLICES", "_NONE", "judge", "_advice"),
    ),
    "solvers.finite_volume.companion": ("finite-volume", ("_remedy", "_by_tokens", "_in_sequence")),
    "solvers.finite_volume.blow_up": ("finite-volume", ("tell",)),
    "solvers.budget": ("all that step", ("remedies", "_sentence", "_tell", "look", "_waiting")),
    "patience": ("all that wait for a velocity", ("remedies", "_waiting")),
}
