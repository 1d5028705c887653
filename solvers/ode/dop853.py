"""DOP853 as data: the method's tableau, and where its slopes stand in memory while a step is taken.

    k_s = f(t + c_s h, y + h sum_j a_sj k_j),  s = 0, ..., 11,   y_new = y + h sum_j b_j k_j,   k_12 = f(t + h, y_new)

k_12 is the next step's k_0; dense output asks for k_13 to k_15 as well. The coefficients are SciPy's.

No stage after the second asks for k_1, none after the fourth for k_2, and k_3, k_4 serve the stages alone, not y_new.
What k_0 to k_7 add to stages 8 to 11 is summed up at once, in one pass over memory instead of four, which saves an
eighth of all traffic; from then on nobody asks for k_3 and k_4 either.

    row   slopes and sums that it holds, one after the other
    0     k_0
    1     k_1   k_3   the sum for stage 9   k_11
    2     k_2   k_5
    3     k_4   the sum for stage 10   k_12
    4-8   k_6, k_7, k_8, k_9, k_10
    9     the sum for stage 11   k_13
    10-11 k_14, k_15

Reference: Hairer, Norsett, Wanner, *Solving Ordinary Differential Equations I*, sections II.5 (order 8, adaptive) and
II.6 (order 7 between steps).
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import DOP853

ORDER, STAGES = 8, 12
A, B, C = DOP853.A, DOP853.B, DOP853.C[:STAGES]
FIFTH, THIRD = DOP853.E5, DOP853.E3  # the two embedded estimates of the error, in k_0 to k_12
A_DENSE, C_DENSE, DENSE = DOP853.A_EXTRA, DOP853.C_EXTRA, DOP853.D  # k_13 to k_15, and the polynomial's coefficients

ROWS = 12
SLOPE_ROWS = np.array([0, 1, 2, 1, 3, 2, 4, 5, 6, 7, 8, 1, 3])  # of k_0 to k_12
SUMMED = 8  # the stage at which slopes before it are summed up, for it and for all later ones
SUM_ROWS = np.array([1, 3, 9])  # of the sums for stages 9 to 11
DENSE_ROWS = np.array([9, 10, 11])  # of k_13 to k_15
