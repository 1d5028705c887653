"""The mean-field limit of self-attention: d_t mu + div(mu Gamma_mu) = 0, the Transformer PDE.

Names are loaded on first use; ``__init__.pyi`` lists them.
"""

import lazy_loader

__version__ = "0.1.0"  # pyproject.toml reads it from here

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
