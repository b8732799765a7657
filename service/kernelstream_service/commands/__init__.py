"""Commands of ``kernelstream`` that come with this package."""
