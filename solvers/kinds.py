"""What kinds of Dataset there are, and who makes each."""

RUN, STUDY, DEPTH, SWEEP = "run", "study", "depth study", "sweep"
COMPARISON, GRID, ENERGIES = "comparison", "grid", "energies"
LIPSCHITZ, BEYOND = "Lipschitz study", "Gaussian match"
SENSITIVITY = "sensitivity"
CLUSTERS, BESIDE = "clusters", "directions"  # of a run, and of a rescaled and a post-norm one
MADE_BY = {
    RUN: 'what vl.solve returned or "vlasov run" wrote',
    STUDY: 'what vl.mean_field_study returned or "vlasov converge" wrote',
    DEPTH: 'what vl.depth_study returned or "vlasov depth" wrote',
    LIPSCHITZ: 'what vl.lipschitz_study returned or "vlasov lipschitz" wrote',
    BEYOND: 'what vl.beyond_gaussian returned or "vlasov beyond-gaussian" wrote',
    SWEEP: 'what vl.sweep returned or "vlasov sweep" wrote',
    COMPARISON: "what vl.compare returned",
    ENERGIES: 'what vl.energies returned or "vlasov energies" wrote',
    SENSITIVITY: 'what vl.sensitivity returned or "vlasov sensitivity" wrote',
    CLUSTERS: "what vl.clusters returned",
    BESIDE: "what vlasov.postprocess.clusters.beside returned",
}

_TABLES = {ENERGIES: "energies", CLUSTERS: "clusters", BESIDE: "directions"}


def spoken(kind: str) -> str:
    """A kind with its article."""
    return f"a table of {_TABLES[kind]}" if kind in _TABLES else f"a {kind}"
