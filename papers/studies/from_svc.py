"""SVC on growing training sets against the default learner and single families (the table of docs/from_svc.md).

KERNELSTREAM_DATA=... python papers/studies/from_svc.py [--data ijcnn1] [--sizes 1000,4000,16000,49990]
"""

from __future__ import annotations

import argparse
import io
import time

import numpy as np
from sklearn.svm import SVC

import kernelstream
from kernelstream import FeatureClassifier, KernelClassifier, RRFClassifier, datasets
from kernelstream.features import RandomFourier


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="ijcnn1")
    parser.add_argument("--sizes", default="1000,4000,16000,49990")
    parser.add_argument("--gamma", type=float, default=2.0)
    args = parser.parse_args()
    train, test = datasets.load(args.data, split="train"), datasets.load(args.data, split="test")
    order = np.random.default_rng(0).permutation(train.X.shape[0])
    X, y = train.X[order], train.y[order]
    Xt, yt = test.X[:20000], test.y[:20000]
    print(f"{args.data}: {X.shape[0]:,} training rows, {X.shape[1]} columns; processor seconds\n")
    print(f"{'model':34} {'rows':>8} {'mistakes':>9} {'fit':>8} {'predict':>8} {'size':>9}")

    def show(name: str, model: object, rows: int, size: int, fit: float) -> None:
        start = time.process_time()
        mistakes = np.mean(model.predict(Xt) != yt)  # type: ignore[attr-defined]
        print(
            f"{name:34} {rows:8,} {mistakes:9.2%} {fit:7.1f}s {time.process_time() - start:7.1f}s {size / 1e3:6.0f} kB"
        )

    for n in map(int, args.sizes.split(",")):
        start = time.process_time()
        svc = SVC(C=10.0, gamma=args.gamma).fit(X[:n], y[:n])
        show("SVC(C=10)", svc, n, svc.support_vectors_.nbytes + svc.dual_coef_.nbytes, time.process_time() - start)
    fourier = RandomFourier(gamma=args.gamma, n_components=1024)
    models = {
        "KernelClassifier, learn": (KernelClassifier(random_state=0), "partial_fit"),
        "KernelClassifier, fit": (KernelClassifier(random_state=0), "fit"),
        "KernelClassifier small, learn": (KernelClassifier(size="small", random_state=0), "partial_fit"),
        "KernelClassifier small, fit": (KernelClassifier(size="small", random_state=0), "fit"),
        "FeatureClassifier, learn": (FeatureClassifier(fourier, random_state=0), "partial_fit"),
        "RRFClassifier, learn": (RRFClassifier(n_components=256, random_state=0), "partial_fit"),
    }
    for name, (model, call) in models.items():
        start = time.process_time()
        getattr(model, call)(X, y)
        fit = time.process_time() - start
        file = io.BytesIO()
        kernelstream.save(model, file)
        show(name, model, X.shape[0], len(file.getvalue()), fit)


if __name__ == "__main__":
    main()
