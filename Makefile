# make test and make demo do all their set-up by themselves; the second time they are quick.
#
#   make demo         a recorded session as a waterfall in the terminal (needs Python only)
#   make test         every test, with the real server, Jaeger and collector (ARGS="-k name -n0" goes to pytest)
#   make stack        docker-compose.yml without Docker: the server, an agent, bridges, collectors, Jaeger, Prometheus
#   make test-oldest  the tests that need no real part, with the oldest runtime dependencies that are allowed
#   make test-compiled those and the tests with real parts, with the core compiled (needs a C compiler)
#   make test-wheel   installs each wheel alone, the compiled one and the one in Python, and runs its command
#   make bench        what it costs, beside the collector's filelog receiver; bench-python with the core in Python
#   make lint format  checks; rewrites
#   make docs         writes docs/cli.md from the commands' help
#   make lock         resolves requirements/ anew
#   make clean        removes what was made here, not the test parts: they are shared, see tests/real/parts

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv --quiet --no-python-downloads
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
OLDEST := .venv-oldest
OLDEST_READY := $(OLDEST)/.ready
# Two wheels of one source: with the core compiled, and as Python only.
WHEEL := dist/compiled/.built
PYTHON_WHEEL := dist/python/.built
COMPILED := build/compiled
COMPILED_READY := build/.compiled

.DELETE_ON_ERROR:
.PHONY: demo test stack test-faults test-oldest test-compiled test-wheel bench bench-python lint format lock parts venv docs clean

demo: $(RUNS)
	@$(BIN)/otel-bridge demo $(ARGS)

test: $(READY) parts
	$(BIN)/pytest -n 2 --dist loadgroup $(ARGS)

stack: $(READY) parts
	@$(BIN)/python -m tests.stack.without_docker --profile grafana

test-faults: $(READY) parts
	@# One at a time: they are about a pace, and three files of 64 kB hold a tenth of a second of it.
	$(BIN)/pytest -m slow $(ARGS)

# These folders need real parts, packages that the oldest environment leaves out, or more time than a second run is worth.
NO_PARTS := $(addprefix --ignore tests/,real stack faults) -m "not real and not slow"
test-oldest: $(OLDEST_READY)
	$(OLDEST)/bin/pytest -n 2 $(NO_PARTS) $(ARGS)

test-compiled: $(COMPILED_READY) parts
	cd $(COMPILED) && $(CURDIR)/$(BIN)/pytest -n 2 --dist loadgroup --ignore tests/stack --ignore tests/faults $(ARGS)

test-wheel: $(WHEEL) $(PYTHON_WHEEL)
	for wheel in $(CURDIR)/dist/*/*.whl; do \
		$(UV) venv --clear --python $(BIN)/python dist/venv && \
		$(UV) pip install --python dist/venv --constraint requirements/locked.txt $$wheel && \
		(cd dist && venv/bin/otel-bridge --version) || exit 1; \
	done

bench: $(COMPILED_READY) parts
	cd $(COMPILED) && $(CURDIR)/$(BIN)/python -m benchmarks $(ARGS)

bench-python: $(READY) parts
	$(BIN)/python -m benchmarks $(ARGS)

lint: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# Locked with hashes and no address in it: whatever index the machine is set up with serves it.
COMPILE = $(UV) pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make lock"
lock: $(READY)
	$(COMPILE) --upgrade pyproject.toml --group test --group real --group stack --group build --group compiled --group lint \
		--output-file requirements/locked.txt
	@# What the images install: the same versions, and no more than each needs.
	$(COMPILE) --constraint requirements/locked.txt pyproject.toml --output-file requirements/runtime.txt
	$(COMPILE) --constraint requirements/locked.txt --group build --output-file requirements/build.txt
	$(COMPILE) --constraint requirements/locked.txt --group compiled --output-file requirements/compiled.txt
	$(COMPILE) --constraint requirements/locked.txt --group real --output-file requirements/demo.txt
	$(UV) pip compile --universal --python-version 3.11 --no-header --no-annotate --resolution lowest-direct \
		pyproject.toml --output-file requirements/oldest.tmp
	$(COMPILE) --upgrade pyproject.toml --group test --constraint requirements/oldest.tmp \
		--output-file requirements/oldest.txt
	@rm requirements/oldest.tmp

parts: $(READY)
	@$(BIN)/python tests/real/parts/build.py

docs: $(READY)
	$(BIN)/python docs/generate.py

venv: $(READY)

# First what the command itself needs, and what installs it: a demo waits for no more.
$(RUNS): requirements/runtime.txt requirements/build.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "otel-bridge needs Python 3.11 or newer: install it, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) can make no virtual environment: on Debian and Ubuntu, apt install python3-venv" >&2; exit 1; }
	@echo "Installing the locked requirements into $(VENV) ..."
	@$(PIP) --require-hashes -r requirements/runtime.txt -r requirements/build.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(READY): $(RUNS) requirements/locked.txt
	@$(UV) pip install --python $(BIN)/python --require-hashes -r requirements/locked.txt
	@touch $@

$(OLDEST_READY): $(PYTHON_WHEEL) requirements/oldest.txt
	$(UV) venv --clear --python $(BIN)/python $(OLDEST)
	$(UV) pip install --python $(OLDEST) --require-hashes -r requirements/oldest.txt
	$(UV) pip install --python $(OLDEST) --no-deps dist/python/*.whl
	@touch $@

BUILD = $(UV) build --wheel --no-build-isolation --python $(BIN)/python
PACKAGED := pyproject.toml hatch_build.py README.md LICENSE $(shell find otel_bridge -type f -not -name '*.pyc')
$(PYTHON_WHEEL): $(READY) $(PACKAGED)
	@rm -rf $(@D)
	HATCH_BUILD_NO_HOOKS=true $(BUILD) --out-dir $(@D)
	@touch $@

$(WHEEL): $(READY) $(PACKAGED)
	@rm -rf $(@D)
	@echo "Compiling the core ..."
	$(BUILD) --out-dir $(@D)
	@ls $(@D)/*-cp*.whl > /dev/null 2>&1 || { echo "The core was not compiled: that needs a C compiler and the headers of Python" \
		"(on Debian and Ubuntu, apt install gcc python3-dev)." >&2; exit 1; }
	@touch $@

# The checkout once more, with the package from the wheel: an extension module comes before the source of its name.
$(COMPILED_READY): $(WHEEL) $(shell find tests benchmarks -type f -not -name '*.pyc')
	@rm -rf build
	@$(BIN)/python -m zipfile -e dist/compiled/*.whl $(COMPILED)
	@git ls-files --cached --others --exclude-standard ':!otel_bridge' | tar -cf - -T - | tar -xf - -C $(COMPILED)
	@touch $@

clean:
	rm -rf $(VENV) $(OLDEST) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
