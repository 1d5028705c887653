"""What is made of solutions: figures, distances, comparisons, reports.

Every module takes Datasets with the schema of the solvers and is imported by itself
(``from vlasov.postprocess import figures``), so that this room costs nothing until it is used.
"""
