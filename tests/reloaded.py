"""A model after a file."""

import io

from kernelstream import load, save


def reloaded(model):
    """The model that a file of this one holds."""
    file = io.BytesIO()
    save(model, file)
    return load(file)
