"""Models of rows on many machines, the workers of Dask or the executors of Spark, as sums that add up exactly.

``fit`` takes ridge regression or Falkon's method and a dask array, a dask frame, a DataFrame of Spark, or files that
the workers read. The rows stay where they are; only sums over them are sent. ``predict`` asks any model.

>>> from kernelstream import OnlineRidge, distributed
>>> model = OnlineRidge(lam=0.1, random_state=0)
>>> distributed.fit(model, distributed.files("part-*.csv", target="price"))  # doctest: +SKIP

Needs the extra ``distributed`` or ``spark``; docs/distributed.md says what is exact, and what it costs.
"""

from .fit import fit
from .predict import predict
from .sums import BadPartitionError, files

__all__ = ["BadPartitionError", "files", "fit", "predict"]
