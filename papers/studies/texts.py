"""Streams of texts: the default learner, scikit-learn's hashing with SGD or naive Bayes, River, and Vowpal Wabbit.

    python papers/studies/texts.py [--rows N] [--vw PYTHON] [NAME ...]

Needs KERNELSTREAM_DATA, for the files ``raw/SMSSpamCollection.tsv`` and ``raw/sentences_labelled.tsv``; another NAME is
a file of lines "text<tab>label". Prequential: every row is predicted before it is learned, one after the other (the
default learner in blocks, which gives the same). Prints a Markdown table of log loss, mistakes in per cent, and rows
per second of processor time. ``--vw`` is a Python that has vowpalwabbit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import MultinomialNB

from kernelstream import KernelClassifier, datasets

VW = """
import json, math, re, sys
from vowpalwabbit import Workspace
model = Workspace("--loss_function logistic --ngram 2 -b 18 --quiet")
found = []
for text, label in json.load(sys.stdin):
    words = " ".join(re.findall(r"\\w+", text.lower()))
    score = model.predict(f"| {words}")
    found.append(1 / (1 + math.exp(-max(min(score, 30), -30))))
    model.learn(f"{2 * label - 1} | {words}")
json.dump(found, sys.stdout)
"""


def load(name: str) -> tuple[list[str], np.ndarray]:
    """Texts and labels 0 and 1."""
    folder = datasets.folder()
    if name == "sms":
        lines = (folder / "raw" / "SMSSpamCollection.tsv").read_text(encoding="utf-8").splitlines()[1:]
        rows = [line.split("\t", 1) for line in lines]
        return [row[1] for row in rows], np.array([row[0] == "spam" for row in rows], int)
    path = folder / "raw" / "sentences_labelled.tsv" if name == "sentences" else Path(name)
    rows = [line.rsplit("\t", 1) for line in path.read_text(encoding="utf-8").split("\n")]
    rows = [row for row in rows if len(row) == 2 and row[1].strip() in ("0", "1")]
    order = np.random.RandomState(0).permutation(len(rows)) if name == "sentences" else range(len(rows))
    return [rows[i][0] for i in order], np.array([int(rows[i][1]) for i in order])


def default_learner(texts: list[str], y: np.ndarray) -> np.ndarray:
    scores = KernelClassifier(random_state=0).learn(pd.DataFrame({"text": texts}), y)
    return 1 / (1 + np.exp(-scores))


def hashed(make: Callable[[], Any], **options: Any) -> Callable[[list[str], np.ndarray], np.ndarray]:
    """A model of scikit-learn on hashed pieces, row by row."""

    def run(texts: list[str], y: np.ndarray) -> np.ndarray:
        X, model, p = HashingVectorizer(n_features=2**18, **options).transform(texts), make(), np.full(len(y), 0.5)
        for i in range(len(y)):
            if i:
                p[i] = model.predict_proba(X[i])[0, 1]
            model.partial_fit(X[i], y[i : i + 1], classes=[0, 1])
        return p

    return run


def of_river(pipeline: Callable[[], Any]) -> Callable[[list[str], np.ndarray], np.ndarray]:
    def run(texts: list[str], y: np.ndarray) -> np.ndarray:
        model, p = pipeline(), np.full(len(y), 0.5)
        for i, (text, label) in enumerate(zip(texts, y.tolist(), strict=True)):
            p[i] = model.predict_proba_one(text).get(True, 0.5 if i < 2 else 0.0)
            model.learn_one(text, bool(label))
        return p

    return run


def rivals(vw: str | None) -> Iterator[tuple[str, Callable[[list[str], np.ndarray], np.ndarray]]]:
    yield "KernelClassifier()", default_learner
    words, characters = {"ngram_range": (1, 2)}, {"analyzer": "char_wb", "ngram_range": (3, 5)}
    for name, pieces in {"words": words, "characters": characters}.items():
        yield f"scikit-learn, hashing, SGD, {name}", hashed(lambda: SGDClassifier(loss="log_loss"), **pieces)
    counts = words | {"alternate_sign": False, "norm": None}
    yield "scikit-learn, hashing, naive Bayes, words", hashed(MultinomialNB, **counts)

    from river import feature_extraction, linear_model, naive_bayes

    pairs = {"ngram_range": (1, 2)}
    yield (
        "River, TF-IDF, logistic regression",
        of_river(lambda: feature_extraction.TFIDF(**pairs) | linear_model.LogisticRegression()),
    )
    yield (
        "River, bag of words, naive Bayes",
        of_river(lambda: feature_extraction.BagOfWords(**pairs) | naive_bayes.MultinomialNB()),
    )
    yield (
        "River, TF-IDF, naive Bayes",
        of_river(lambda: feature_extraction.TFIDF(**pairs) | naive_bayes.MultinomialNB()),
    )
    if vw:

        def wabbit(texts: list[str], y: np.ndarray) -> np.ndarray:
            rows = json.dumps(list(zip(texts, y.tolist(), strict=True)))
            done = subprocess.run([vw, "-c", VW], input=rows, capture_output=True, text=True, check=True)
            return np.array(json.loads(done.stdout))

        yield "Vowpal Wabbit, --ngram 2", wabbit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["sms", "sentences"], metavar="NAME")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--vw", metavar="PYTHON")
    given = parser.parse_args()
    print("| texts | rows | learner | log loss | mistakes, % | rows/s |\n|---|---|---|---|---|---|")
    for name in given.names:
        texts, y = load(name)
        texts, y = texts[: given.rows], y[: given.rows]
        for what, run in rivals(given.vw):
            start = time.process_time()
            p = np.clip(run(texts, y), 1e-6, 1 - 1e-6)
            speed = len(y) / (time.process_time() - start)
            loss = -np.mean(np.where(y == 1, np.log(p), np.log1p(-p)))
            rate = f"{speed:,.0f}" if "Wabbit" not in what else ""
            print(
                f"| {name} | {len(y):,} | {what} | {loss:.4f} | {100 * np.mean((p > 0.5) != y):.2f} | {rate} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
