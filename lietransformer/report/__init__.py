"""From runs to the paper's tables and figures, and to verdicts on its claims.

Everything here reads the files of runs, local or published. Nothing imports torch, so that it
answers in seconds, with all, some or none of the runs done.
"""
