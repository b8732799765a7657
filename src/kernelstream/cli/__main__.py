"""``python -m kernelstream.cli``."""

import sys

from . import main

sys.exit(main())
