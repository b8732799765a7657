"""Training and prediction on many machines, the workers of a dask cluster.

``fit`` takes an estimator of this library and rows that are spread over workers: dask arrays, dask frames, or a glob of
files that the workers read. The rows stay where they are; only statistics, weights and answers are sent.

>>> from kernelstream import OnlineRidge, distributed
>>> model = OnlineRidge(lam=0.1, random_state=0)
>>> distributed.fit(model, "part-*.csv", target="price", client="tcp://host:8786")  # doctest: +SKIP

Needs the extra ``distributed``; docs/distributed.md says what each algorithm sends and where its limits are.
"""

from ..streams.base import BLOCK_ROWS
from ._client import connect
from ._data import BadPartitionError, Data, partitions
from ._fit import fit
from .predict import predict, score

__all__ = [
    "BLOCK_ROWS",
    "BadPartitionError",
    "Data",
    "connect",
    "fit",
    "partitions",
    "predict",
    "score",
]
