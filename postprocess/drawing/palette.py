"""The colours of lines, on white and on dark paper: told apart by the colour-blind, and in grey.

Every two of them are nine steps of lightness apart, and none is too pale for lines or too near to the paper.
``tests/postprocess/test_palette.py`` measures both. This imports no Matplotlib: pages of reports take them too.
"""

#: Blue, vermilion, green, plum, amber, sky, black.
PALETTE = ("#2F4F87", "#B14811", "#40906E", "#512842", "#E8B564", "#38A7FA", "#000000")
#: The same hues on dark paper, and white.
DARK = ("#407CB1", "#D4795E", "#39E0B9", "#A4326C", "#FEE18F", "#73B2E9", "#FFFFFF")
