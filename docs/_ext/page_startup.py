"""What the kernel of each page runs before its cells (conf.py names it): no cell needs what readers do not have."""

import page_cells

del page_cells  # names of cells are the page's own
