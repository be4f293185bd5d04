"""`python -m lietransformer`, the same as the command `lietransformer`."""

import sys

from lietransformer.cli import main

sys.exit(main())
