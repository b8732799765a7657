#!/usr/bin/env bash
# Checks that the package installs and works without a C++ compiler: a separate environment, a compiler that always
# fails, and a smoke test of the result.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-pure
build=build/pure
log="$build.log"

[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
rm -rf "$build"
mkdir -p build

echo "pure Python check: installing with a broken compiler"
# Build tools live in the environment, so that a second run takes seconds; bytecode is left to the first import.
pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@"; }
pip -q install --no-compile 'scikit-build-core>=1.1' 'nanobind>=3.1' 'cmake>=3.26' 'ninja>=1.11' >/dev/null
pip -q uninstall -y kernelstream >/dev/null 2>&1 || true
unset KERNELSTREAM_REQUIRE_NATIVE
if ! CC=/bin/false CXX=/bin/false pip install --no-compile --no-build-isolation \
    --config-settings=build-dir="$build" . >"$log" 2>&1; then
    cat "$log"
    echo "pure Python check: FAILED, the install does not survive a broken compiler" >&2
    exit 1
fi

# Where the extension is insisted on, the same compiler must be an error.
if KERNELSTREAM_REQUIRE_NATIVE=1 CC=/bin/false CXX=/bin/false pip -q wheel --no-deps --no-build-isolation \
    --config-settings=build-dir="$build" --wheel-dir "$build" . >>"$log" 2>&1; then
    echo "pure Python check: FAILED, KERNELSTREAM_REQUIRE_NATIVE does not insist" >&2
    exit 1
fi

# From another folder: only what was installed may be imported.
check="$PWD/tools/pure_python_smoke.py"
python="$PWD/$venv/bin/python"
cd /
"$python" "$check"
echo "pure Python check: passed"
