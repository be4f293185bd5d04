"""What a sweep will take: time, memory and disk, before any of it is submitted.

Each model of the sweep is trained for a few steps, as its runs will be; the sweep says how many
steps and evaluations there are.
"""
