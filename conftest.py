"""What collecting tests leaves out: programs that tests start by themselves, and modules of extras that are missing."""

from importlib.util import find_spec

collect_ignore_glob = ["tests/passes/triton_*.py", "tests/files/fixtures/*.py"]
if find_spec("torch") is None:
    collect_ignore_glob.append("src/kernelstream/engine/torch/*")
