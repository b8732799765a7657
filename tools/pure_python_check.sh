#!/usr/bin/env bash
# Proves that the package installs and works where no C++ compiler does: an environment of its own, a compiler that
# always fails, and a smoke test of the result.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-pure
build=build/pure
log="$build.log"

[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
rm -rf "$build"
mkdir -p build

echo "pure Python check: installing with a broken compiler"
# Build tools live in the environment, so that a second run installs in seconds.
install() { "$venv/bin/python" -m pip --disable-pip-version-check -q install "$@"; }
install 'scikit-build-core>=1.1' 'nanobind>=3.1' 'cmake>=3.26' 'ninja>=1.11'
"$venv/bin/python" -m pip --disable-pip-version-check -q uninstall -y kernelstream 2>/dev/null || true
if ! env -u KERNELSTREAM_REQUIRE_NATIVE CC=/bin/false CXX=/bin/false \
    "$venv/bin/python" -m pip --disable-pip-version-check install \
    --no-build-isolation --no-cache-dir --config-settings=build-dir="$build" . >"$log" 2>&1; then
    cat "$log"
    echo "pure Python check: FAILED, the install does not survive a broken compiler" >&2
    exit 1
fi

# From another folder: only what was installed may be imported.
check="$PWD/tools/pure_python_smoke.py"
python="$PWD/$venv/bin/python"
cd /
env -u KERNELSTREAM_REQUIRE_NATIVE "$python" "$check"
echo "pure Python check: passed"
