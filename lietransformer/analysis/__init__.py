"""From runs to the paper's tables and figures, and to verdicts on its claims.

Everything here reads the files of runs. Nothing imports torch, so that it answers in seconds on a
laptop, with all, some or none of the runs done.
"""
