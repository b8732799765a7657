"""Losses and updates that between them take every branch of the formulas, beside AdaGrad's."""

from kernelstream.updates import NORMA, OGD, CoinBetting, NormAdaGrad, PassiveAggressive, Pegasos, Perceptron

PAIRS = [
    ("hinge", OGD(0.5)),
    ("hinge", CoinBetting()),
    ("squared_hinge", OGD(0.7, schedule="sqrt", lam=0.01)),
    ("logistic", Pegasos(0.1)),
    ("perceptron", Perceptron(0.5)),
    ("squared", NormAdaGrad()),
    ("absolute", Perceptron(1.0)),
    ("epsilon_insensitive", NORMA(0.3, 0.02)),
    ("huber", OGD(schedule="inverse", lam=0.3)),
    ("quantile", CoinBetting()),
    ("hinge", PassiveAggressive(0.4)),
    ("crammer_singer", PassiveAggressive(0.4, variant=2)),
    ("multiclass_perceptron", NORMA(0.3, 0.02)),
    ("softmax", NormAdaGrad()),
    ("one_vs_rest", Perceptron(0.5, ties=True)),
    ("softmax", CoinBetting()),
]
