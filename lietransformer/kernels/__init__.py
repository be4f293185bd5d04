"""C code for functions of the method that PyTorch computes in many passes over memory."""

# With 0 in this environment variable, PyTorch computes everything.
SWITCH = "LIETRANSFORMER_NATIVE"
