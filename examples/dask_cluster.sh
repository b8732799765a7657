#!/bin/sh
# Start a Dask scheduler and two workers from a shell, and train a model on a glob of files.
#
#     sh examples/dask_cluster.sh [FOLDER]
#
# On several machines, run the three "dask" commands on different hosts, with the files where all of them see them.
set -e
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
python=${PYTHON:-python}

# nine files of generated rows; the last is held out
"$python" - "$folder" <<'END'
import sys
import numpy as np
from sklearn.datasets import dump_svmlight_file

rng = np.random.default_rng(0)
for i in range(9):
    X = rng.uniform(-1, 1, (5000, 5))
    y = np.where(np.sin(3 * X[:, 0]) * X[:, 1] > 0, 1, -1)
    dump_svmlight_file(X, y, f"{sys.argv[1]}/{f'part-{i}' if i < 8 else 'test'}.svm", zero_based=False)
END

"$python" -m distributed.cli.dask_scheduler --port 0 --dashboard-address :0 --scheduler-file "$folder/scheduler.json" \
    >"$folder/scheduler.log" 2>&1 &
pids=$!
for worker in 1 2; do
    "$python" -m distributed.cli.dask_worker --nthreads 1 --nworkers 1 --scheduler-file "$folder/scheduler.json" \
        --local-directory "$folder" --dashboard-address :0 >"$folder/worker-$worker.log" 2>&1 &
    pids="$pids $!"
done
trap 'kill $pids 2>/dev/null' EXIT

# the scheduler writes its address when it is up; a client waits for the workers
address=$("$python" - "$folder/scheduler.json" <<'END'
import sys
from distributed import Client

with Client(scheduler_file=sys.argv[1], timeout=120) as client:
    client.wait_for_workers(2, timeout=120)
    print(client.scheduler.address)
END
)
echo "scheduler at $address"

kernelstream="$python -m kernelstream.cli"
$kernelstream train "$folder/part-*.svm" --dask "$address" --algorithm ridge --n-components 300 --n-features 5 \
    --model "$folder/model.ks"
$kernelstream evaluate --model "$folder/model.ks" "$folder/test.svm"
