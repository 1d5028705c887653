"""Code that the kernel of each page runs before its cells (conf.py names this file): cells need vlasov alone."""

import page_cells

del page_cells  # names of cells are the page's own
