"""ONNX export: a trained feature learner as a graph that any ONNX runtime can evaluate, without kernelstream or Python.

The graph takes rows ``X`` (n, d) and gives, for a regressor, ``prediction`` (n,); for a classifier ``label`` (n,),
``score`` ((n,), or (n, classes) for more than two) and, where the loss defines them, ``probability`` (n, classes).
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from . import losses
from .columns.stream import encoder_of
from .estimators import FeatureClassifier, FeatureRegressor, NystroemClassifier, NystroemRegressor
from .extras import needs
from .features.fourier import FourierMapping
from .features.nystroem import GaussianNystroemMapping
from .files import write_atomic

OPSET = 17
KINDS = (FeatureClassifier, FeatureRegressor, NystroemClassifier, NystroemRegressor)


def to_onnx(est: Any, path: str | os.PathLike[str] | None = None) -> Any:
    """Export a trained learner on Fourier features, or on Nyström features of the Gaussian kernel.

    Parameters
    ----------
    est : FeatureClassifier, FeatureRegressor, NystroemClassifier or NystroemRegressor
        Trained.
    path : path, optional
        Where to write the model.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import FeatureClassifier
    >>> from kernelstream.onnx import to_onnx
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = to_onnx(FeatureClassifier(random_state=0).fit(X.astype(np.float32), y))
    >>> [output.name for output in model.graph.output]
    ['label', 'score']
    """
    with needs("onnx"):
        import onnx
    if encoder_of(est) is not None:
        raise ValueError(
            f"this {type(est).__name__} has no ONNX form, because an encoder of words and dates precedes its model. "
            "Export the model behind the encoder (model_ of make_stream), and feed it the result of columns_.transform"
        )
    if type(est) not in KINDS:
        known = ", ".join(kind.__name__ for kind in KINDS)
        raise ValueError(f"{type(est).__name__} has no ONNX form; {known} have one")
    state = est.state_  # raises an AttributeError that explains itself before the first row
    if state["warm_rows"]:
        raise ValueError("the model is still in its warm-up: call fit, or learn more rows, before exporting it")
    if "w" not in state:
        raise ValueError("the model is still a kernel expansion (its budget is not full): it has no ONNX form yet")
    graph = _Graph(onnx, np.dtype(state["dtype"]))
    Z = _features(graph, est, state)  # Nyström features are float64, whatever the type of the rows
    _, weights, offset = est.linear_form()
    score = graph.node("MatMul", Z, graph.constant(weights.T))
    if "center" in state:
        score = graph.node("Add", score, graph.constant(offset))
    score = graph.narrow(score)
    if is_classifier(est):
        _classes(graph, est, score)
    else:
        graph.result("prediction", graph.flat(score), graph.float, ["n"])
    model = graph.model(int(state["n_features"]))
    if path is not None:
        write_atomic(path, model.SerializeToString())
    return model


def _features(graph: _Graph, est: Any, state: dict[str, Any]) -> str:
    """The nodes of the feature map; returns the name of Z (n, n_out)."""
    mapping, *_ = est.linear_form()
    X = "X"
    if "x_count" in state:
        X = _standardized(graph, state)
    if isinstance(mapping, FourierMapping):
        P = graph.node("MatMul", X, graph.constant(mapping.W))
        both = graph.node("Concat", graph.node("Cos", P), graph.node("Sin", P), axis=1)
        return graph.node("Mul", both, graph.constant(np.array(1 / math.sqrt(mapping.W.shape[1]))))
    if isinstance(mapping, GaussianNystroemMapping):
        # The projection magnifies rounding errors by up to 1 / sqrt(the least eigenvalue kept), so float32 would cost
        # digits here. |x - s|^2 = |x|^2 - 2 x's + |s|^2, never below 0.
        X = graph.widen(X)
        mapping, *_ = est.linear_form(np.float64)
        norms = graph.node("ReduceSumSquare", X, axes=[1], keepdims=1)
        D = graph.node("Add", graph.node("MatMul", X, graph.constant(mapping.S2)), norms)
        D = graph.node("Add", D, graph.constant(mapping.norms[None, :]))
        D = graph.node("Max", D, graph.constant(np.array(0.0)))
        K = graph.node("Exp", graph.node("Mul", D, graph.constant(np.array(-mapping.gamma))))
        return graph.node("MatMul", K, graph.constant(mapping.P))
    raise ValueError(f"{est!r} has no ONNX form: Fourier features and Gaussian Nyström features have one")


def _standardized(graph: _Graph, state: dict[str, Any]) -> str:
    """Rows scaled by the moments of the columns, as the model does it."""
    from .core.ranges import FAR, FEW, scale_of

    count, low, high = (state[name] for name in ("x_count", "x_low", "x_high"))
    mean, deviation, n = scale_of(state)
    X = "X"
    reach = np.where((count >= FEW) & (high > low), FAR * (high - low), np.inf)
    for test, edge, end in (("Less", low - reach, low), ("Greater", high + reach, high)):  # glitches
        far = graph.node(test, X, graph.constant(edge[None, :]))
        X = graph.node("Where", far, graph.constant(end[None, :]), X)
    most = 1e15  # its square is finite in float32
    slope = np.divide(1.0, deviation, out=np.full_like(deviation, most if count < FEW else 0.0), where=deviation > 0)
    X = graph.node("Sub", X, graph.constant(mean[None, :]))
    u = graph.node("Mul", X, graph.constant(slope[None, :]))
    u = graph.node("Clip", u, graph.constant(np.array(-most)), graph.constant(np.array(most)))
    # u / sqrt(1 + (1 + u^2) / n); a last product with sqrt(n) would be fused with the projection, as a float32
    n = np.maximum(n, 1.0)[None, :]
    square = graph.node("Div", graph.node("Mul", u, u), graph.constant(n))
    return graph.node("Div", u, graph.node("Sqrt", graph.node("Add", square, graph.constant(1 + 1 / n))))


def _classes(graph: _Graph, est: Any, score: str) -> None:
    """The nodes of labels, scores and probabilities."""
    classes, outputs = est.classes_, est.state_["n_outputs"]
    labels = graph.labels(classes)
    if outputs == 1:
        flat = graph.flat(score)
        if len(classes) == 1:
            index = graph.node("Mul", graph.node("Cast", flat, to=graph.int64), graph.integers([0]))
        else:
            index = graph.node(
                "Cast", graph.node("GreaterOrEqual", flat, graph.constant(np.array(0.0))), to=graph.int64
            )
    else:
        flat, index = score, graph.node("ArgMax", score, axis=1, keepdims=0)
    graph.result("label", graph.node("Gather", labels, index), graph.label_type(classes), ["n"])
    graph.result("score", graph.node("Identity", flat), graph.float, ["n"] if outputs == 1 else ["n", outputs])
    if len(classes) < 2 or est.link_now() is not None:
        return
    name = losses.get(est.loss, "multiclass" if len(classes) > 2 else "classification").name
    if name == "logistic":
        p = graph.node("Sigmoid", score)
        p = graph.node("Concat", graph.node("Sub", graph.constant(np.array(1.0)), p), p, axis=1)
    elif name == "softmax":
        p = graph.node("Softmax", score, axis=1)
    else:
        return  # probabilities of a form this graph does not know
    graph.result("probability", p, graph.float, ["n", len(classes)])


class _Graph:
    """A graph under construction: nodes, constants and results by name."""

    def __init__(self, onnx: Any, dtype: np.dtype):
        self.onnx, self.dtype = onnx, dtype
        self.wide = False
        self.float, self.int64, self.string = (
            onnx.TensorProto.DOUBLE if dtype == np.float64 else onnx.TensorProto.FLOAT,
            onnx.TensorProto.INT64,
            onnx.TensorProto.STRING,
        )
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.results: list[Any] = []

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def widen(self, value: str) -> str:
        """The value in float64; constants are float64 from here to :meth:`narrow`."""
        self.wide = True
        return self.node("Cast", value, to=self.onnx.TensorProto.DOUBLE)

    def narrow(self, value: str) -> str:
        """The value in the precision of the model again."""
        was, self.wide = self.wide, False
        return self.node("Cast", value, to=self.float) if was else value

    def constant(self, value: np.ndarray) -> str:
        """A constant in the precision of the model."""
        dtype = np.float64 if self.wide else self.dtype
        return self._constant(np.ascontiguousarray(value, dtype=dtype).reshape(value.shape))

    def integers(self, value: Any) -> str:
        return self._constant(np.array(value, np.int64))

    def labels(self, classes: np.ndarray) -> str:
        """Labels as integers, numbers or strings."""
        if classes.dtype.kind in "US":
            name = f"constant_{len(self.constants)}"
            values = [str(label).encode() for label in classes]
            self.constants.append(self.onnx.helper.make_tensor(name, self.string, [len(values)], values))
            return name
        return self._constant(classes.astype(np.float64 if classes.dtype.kind == "f" else np.int64))

    def label_type(self, classes: np.ndarray) -> int:
        kinds = {"U": self.string, "S": self.string, "f": self.onnx.TensorProto.DOUBLE}
        return kinds.get(classes.dtype.kind, self.int64)

    def _constant(self, value: np.ndarray) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(value, name))
        return name

    def flat(self, score: str) -> str:
        """(n, 1) as (n,)."""
        return self.node("Reshape", score, self.integers([-1]))

    def result(self, name: str, value: str, kind: int, shape: list[Any]) -> None:
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.results.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))

    def model(self, d: int) -> Any:
        helper = self.onnx.helper
        rows = helper.make_tensor_value_info("X", self.float, ["n", d])
        graph = helper.make_graph(self.nodes, "kernelstream", [rows], self.results, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="kernelstream")
        made.ir_version = 9  # understood by runtimes since 2023
        self.onnx.checker.check_model(made)
        return made
