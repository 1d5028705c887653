"""The theory's estimates, as functions. |.| is the spectral norm; supports and tokens lie in the ball of radius R.

``a_priori``: velocities, their slopes, and how far two solutions part. ``of_tokens``: how much n tokens can move each
other, from above. ``adversarial``: the data that come close to it, and the bounds from below. ``gaussian_tokens``: what
data of a Gaussian law do.

References: Castin, Ablin, Carrillo, Peyre (2025), arXiv:2501.18322, section 3; Castin, Ablin, Peyre (2024),
arXiv:2312.14820; Kim, Papamakarios, Mnih (2021), arXiv:2006.04710.
"""

from vlasov.estimates.a_priori import (
    jacobian_bound,
    stability_bound,
    stability_exponent,
    stability_rate,
    support_radius,
    velocity_bound,
)
from vlasov.estimates.adversarial import (
    Worst,
    adversarial_atoms,
    adversarial_tokens,
    mean_field_lower_bound,
    tokens_lower_bound,
    worst_direction,
)
from vlasov.estimates.gaussian_tokens import gaussian_exponent, steepness
from vlasov.estimates.of_tokens import (
    attention_received,
    column_bound,
    large_radius_limit,
    mean_field_bound,
    tokens_bound,
    uniform_rate,
)

__all__ = [
    "Worst",
    "adversarial_atoms",
    "adversarial_tokens",
    "attention_received",
    "column_bound",
    "gaussian_exponent",
    "jacobian_bound",
    "large_radius_limit",
    "mean_field_bound",
    "mean_field_lower_bound",
    "stability_bound",
    "stability_exponent",
    "stability_rate",
    "steepness",
    "support_radius",
    "tokens_bound",
    "tokens_lower_bound",
    "uniform_rate",
    "velocity_bound",
    "worst_direction",
]
