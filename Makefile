# make demo | test | lint | build | docs | purecheck | reproduce | clean, on a fresh clone with Python, pip and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Bytecode is left to the first import: most of what is installed is never imported.
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

# Modules are compiled once, at their first import, also where the environment asks Python to keep nothing: an interpreter
# then starts in a third of the time, and the tests start dozens of them.
export PYTHONDONTWRITEBYTECODE :=

# What an editable install depends on: the compiled sources, and which modules exist (the install maps their names).
SOURCES := CMakeLists.txt $(wildcard cpp/*/*)
MODULES := $(shell find src service/kernelstream_service papers/kernelstream_papers -name '*.py' | LC_ALL=C sort | cksum | cut -d ' ' -f 1)
DEPS := $(VENV)/.deps
RUN := $(VENV)/.run-$(MODULES)
NATIVE := $(VENV)/.native-$(MODULES)
DOCS := $(VENV)/.docs

# With a compiler at hand, an extension that does not compile is an error, not a quiet fall back to pure Python.
COMPILER := $(shell command -v c++ || command -v g++ || command -v clang++)
ifneq ($(COMPILER),)
REQUIRE := KERNELSTREAM_REQUIRE_NATIVE=1
endif

# Two builds at once would share a build folder.
LOCK := $(if $(shell command -v flock),flock $(VENV)/.lock)

# Tests run in this many processes, each with one BLAS thread.
JOBS ?= 2

.PHONY: demo test lint build docs purecheck reproduce clean

demo: $(RUN)
	$(BIN)/kernelstream demo

test: build
	$(MAKE) --no-print-directory -j 2 lint purecheck
	OPENBLAS_NUM_THREADS=1 SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

# The build writes the stub of the compiled core, which mypy reads.
lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Compiles what changed and installs it; Python files are used from src/ as they are.
build: $(DEPS)
	@$(MAKE) --no-print-directory $(NATIVE)

# The site, in docs/_build/html; the gallery is run, a warning is an error, nothing is fetched.
docs: build $(DOCS)
	OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -W -n --keep-going -q $(DOCS_ARGS) docs docs/_build/html
	@echo "open docs/_build/html/index.html"

purecheck:
	PYTHON="$(PYTHON)" bash tools/pure_python_check.sh

# The papers' tables and figures; hours in full. What has been run is kept, so it can be stopped and started.
reproduce: build
	$(BIN)/kernelstream reproduce --all --results papers/results $(REPRODUCE_ARGS)

clean:
	rm -rf $(VENV) .venv-pure build dist docs/_build docs/api/generated docs/api/backreferences docs/gallery \
	    .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Enough to run the demo. A development install serves as well.
$(RUN): pyproject.toml $(SOURCES) | $(BIN)/python
	@if [ -e $(DEPS) ]; then $(MAKE) --no-print-directory build; else \
	    echo "installing kernelstream (compiles its core: a minute or two)"; $(LOCK) $(PIP) install --no-compile -e '.[plots]'; fi
	@rm -f $(VENV)/.run-* && touch $@

# The build tools come first, because the build then runs in this environment (its folder can be reused).
$(DEPS): pyproject.toml papers/pyproject.toml service/pyproject.toml | $(BIN)/python
	@echo "installing kernelstream and the development tools"
	@$(LOCK) $(PIP) install --no-compile 'scikit-build-core>=1.1' 'nanobind>=3.1' 'cmake>=3.26' 'ninja>=1.11'
	@$(REQUIRE) $(LOCK) $(PIP) install --no-compile --no-build-isolation -e '.[dev]' -e './service[test]' -e ./papers
	@rm -f $(VENV)/.native-* $(VENV)/.run-* && touch $@ $(NATIVE) $(RUN)

$(DOCS): pyproject.toml | $(DEPS)
	@echo "installing what the site is built with"
	@$(LOCK) $(PIP) install --no-compile --no-build-isolation -e '.[docs]'
	@touch $@

$(NATIVE): $(SOURCES)
	@echo "building kernelstream"
	@$(REQUIRE) $(LOCK) $(PIP) install --no-compile --no-build-isolation --no-deps -e .
	@rm -f $(VENV)/.native-* $(VENV)/.run-* && touch $@ $(RUN)
