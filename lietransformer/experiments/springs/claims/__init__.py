"""What the paper claims of the springs experiment."""
