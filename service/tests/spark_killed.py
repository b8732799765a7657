"""A driver that a test kills: a learner for each key over a folder of Parquet files, one file a batch.

python spark_killed.py FOLDER

Prints a line when the query has been started.
"""

import sys
from pathlib import Path

from kernelstream import FeatureRegressor
from kernelstream_service import spark

SCHEMA = "key int, at long, a double, b double, y double"


def main(folder):
    session = spark.session("local[2]", spark_sql_shuffle_partitions=2)
    stream = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    answers = spark.learn_by(stream, FeatureRegressor(random_state=0), "key", "y", order="at")
    query = (
        answers.writeStream.format("parquet")
        .option("path", str(folder / "answers"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    print("started", flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
