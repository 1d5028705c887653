"""What kinds of Dataset there are, and who makes each."""

RUN, STUDY, DEPTH, SWEEP = "run", "study", "depth study", "sweep"
COMPARISON, GRID, ENERGIES = "comparison", "grid", "energies"
LIPSCHITZ, GAUSSIANITY = "Lipschitz study", "gaussianity"
SENSITIVITY = "sensitivity"
CLUSTERS = "clusters"
MADE_BY = {
    RUN: 'what vl.solve returned or "vlasov run" wrote',
    STUDY: 'what vl.mean_field_study returned or "vlasov converge" wrote',
    DEPTH: 'what vl.depth_study returned or "vlasov depth" wrote',
    LIPSCHITZ: 'what vl.lipschitz_study returned or "vlasov lipschitz" wrote',
    GAUSSIANITY: 'what vl.gaussianity returned or "vlasov observe" wrote',
    SWEEP: 'what vl.sweep returned or "vlasov sweep" wrote',
    COMPARISON: "what vl.compare returned",
    ENERGIES: 'what vl.energies returned or "vlasov observe" wrote',
    SENSITIVITY: 'what vl.sensitivity returned or "vlasov sensitivity" wrote',
    CLUSTERS: 'what vl.clusters returned or "vlasov observe" wrote',
}

_TABLES = {ENERGIES: "energies", CLUSTERS: "clusters", GAUSSIANITY: "gaussianity"}


def spoken(kind: str) -> str:
    """A kind with its article."""
    return f"a table of {_TABLES[kind]}" if kind in _TABLES else f"a {kind}"
