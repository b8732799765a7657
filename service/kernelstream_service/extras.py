"""What this package's modules need of others, named as its extras."""

from functools import partial

from kernelstream import extras

needs = partial(extras.needs, package="kernelstream-service")
