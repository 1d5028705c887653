"""How solutions are drawn, piece by piece; ``figures`` and ``movie`` put the pieces together.

``view`` reads a Dataset as a picture needs it and ``mesh`` its density; ``densities``, ``covariances``, ``paths``,
``cone``, ``over_time`` and ``snapshots`` draw one idea each on axes; ``panels`` draws what kinds of Dataset declare;
``style`` is the look of all and ``canvas`` where files go.
Called by ``postprocess.figures``, ``postprocess.movie`` and the pictures of comparisons and studies.
"""
