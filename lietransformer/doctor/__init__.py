"""What is wrong with this machine or these results, and what to do about it. Changes nothing."""
