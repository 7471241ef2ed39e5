# Everything a developer or CI does. Nothing is installed outside build/.
#
# PYTHON chooses the interpreter: make test PYTHON=python3.12

PYTHON ?= python3
JOBS ?= 2
PYTEST_ARGS ?= -n 3 --dist loadgroup
# Markers of the tests that test-python leaves out: SKIP="once thorough".
SKIP ?=
empty :=
LEFT_OUT = $(subst $(empty) $(empty), or ,$(strip $(SKIP)))
FUZZ_RUNS ?= 20000

TAG := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
ifeq ($(TAG),)
$(error "$(PYTHON)" does not run: name a CPython 3.11 or later with PYTHON=...)
endif
VENV := build/venv-$(TAG)
RESULTS := build/results
PYTEST = STRETTO_TEST_INSTALLED=1 $(VENV)/bin/python -m pytest -o cache_dir=$(RESULTS)/cache-$(TAG)

# scikit-build-core finds cmake and ninja, and we find all tools, in the venv.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export CMAKE_GENERATOR := Ninja
# Without bytecode each process of pytest compiles all tests again, for 20 seconds.
export PYTHONDONTWRITEBYTECODE :=

PIP := $(VENV)/bin/python -m pip install --quiet
# What is imported is compiled then, which takes less time than to compile all.
pip_extras = $(PYTHON) tools/requirements.py $(1) > $(VENV)/requirements.txt \
    && $(PIP) --no-compile -r $(VENV)/requirements.txt
NATIVE_SOURCES := native/*/*.[ch] native/*/*/*.[ch]

# The address sanitizers want the usual address space layout (setarch is in
# Debian's base system; where it may not be used the tests run without it).
NO_ASLR := $(shell setarch -R true 2>/dev/null && echo setarch -R)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## show this
	@echo "Targets (PYTHON=$(PYTHON), CPython $(TAG)):"
	@sed -n 's/^\([a-z0-9-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

# --- environments -----------------------------------------------------------

# A venv with the development tools; made again when the requirements change.
$(VENV)/.ready: pyproject.toml
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(call pip_extras,build lint test)
	touch $@

# The demo needs nothing but what builds the package, and a pip newer than
# Debian 12's, which knows no -C.
build/venv/.ready:
	$(PYTHON) -m venv build/venv
	build/venv/bin/python -m pip install --quiet --upgrade pip
	touch $@

# Not isolated, so that the CMake build folder lives on and a second install
# compiles only what changed. `make wheels` builds in isolation.
.PHONY: install
install: libraries ## install both packages into the test environment
	$(PIP) --no-build-isolation --no-deps --force-reinstall \
	    -C cmake.define.STRETTO_WERROR=ON -C cmake.define.STRETTO_LIBRARIES=$(LIBRARIES) .
	$(PIP) --no-build-isolation --no-deps --force-reinstall ./stretto-fidl

# C without Python.h is compiled once, for the C tests and for all CPythons of a system.
LIBRARIES := $(CURDIR)/build/native-release$(STRETTO_SYSTEM)
.PHONY: libraries
libraries: $(VENV)/.ready
	cmake --preset release --log-level=WARNING
	cmake --build --preset release --parallel $(JOBS) --target st_core st_analysis st_probes

# --- what a visitor runs ----------------------------------------------------

.PHONY: demo
demo: build/venv/.ready ## build, record examples/demo.py, say what the trace holds
	build/venv/bin/python -m pip install --quiet --force-reinstall \
	    -C build-dir=build/cmake-demo .
	build/venv/bin/stretto record \
	    -o build/demo.pftrace examples/demo.py
	@echo
	@echo "The trace is build/demo.pftrace. Drop it on https://ui.perfetto.dev to look at it."

.PHONY: test
test: test-native test-quick ## within 5 minutes: what is not marked `thorough`, on one CPython

.PHONY: test-pythons
test-pythons: ## make test on each CPython found, from 3.11 to 3.15
	tools/pythons | while read -r version python enter; do \
	    test -n "$$python" || { echo "SKIP: CPython $$version not found"; continue; }; \
	    $$enter $(MAKE) test PYTHON="$$python" </dev/null || exit 1; \
	done

.PHONY: versions
versions: install ## the same programs on each CPython that `make install` was run for: one structure
	STRETTO_VERSIONS=1 $(PYTEST) tests/conformance/test_versions.py \
	    --junitxml=$(RESULTS)/versions.xml

.PHONY: newest test-internals
newest: ## build for the newest CPython found, supported or not, and test what uses its internals
	tools/pythons newest | { read -r version python enter && \
	    $$enter $(MAKE) test-internals PYTHON="$$python" </dev/null; }
test-internals: install
	$(PYTEST) tests/meta/test_python_versions.py tests/unit/native tests/unit/profilers

.PHONY: newer-debian
newer-debian: ## CPython 3.14 and 3.15 in build/newer_debian, for tools/in_newer_debian (needs root)
	tools/in_newer_debian python3.14 --version
	tools/in_newer_debian python3.15 --version

.PHONY: test-all
test-all: test-native test-python ## all tests on one CPython

.PHONY: test-quick
test-quick: install
	@mkdir -p $(RESULTS)
	STRETTO_HYPOTHESIS=quick $(PYTEST) $(PYTEST_ARGS) -m "not thorough" \
	    --junitxml=$(RESULTS)/python-$(TAG).xml

.PHONY: test-python
test-python: install ## all Python tests (PYTEST_ARGS=..., SKIP="once thorough")
	@mkdir -p $(RESULTS)
	$(PYTEST) $(PYTEST_ARGS) $(if $(SKIP),-m "not ($(LEFT_OUT))") --junitxml=$(RESULTS)/python-$(TAG).xml

.PHONY: retest-python
retest-python: ## the tests that failed last time, one after the other
	$(PYTEST) --last-failed --last-failed-no-failures=none \
	    --junitxml=$(RESULTS)/again/python-$(TAG).xml

.PHONY: pictures
pictures: install ## draw the pictures of docs/ anew: demos in the Perfetto UI (needs chromium)
	$(VENV)/bin/python tools/pictures.py docs

.PHONY: endurance
endurance: install ## the long form of the endurance tests: what the project promises
	STRETTO_ENDURANCE=1 $(VENV)/bin/python -m pytest tests/integration/test_endurance.py \
	    stretto-fidl/tests/conformance/test_many.py

.PHONY: differential
differential: install ## 2,000 random sequences against ours and Perfetto's service; mutants of ours
	@mkdir -p $(RESULTS)
	STRETTO_DIFFERENTIAL=2000 STRETTO_MUTANTS=1 $(PYTEST) tests/conformance/differential \
	    --junitxml=$(RESULTS)/differential.xml

.PHONY: test-native
test-native: $(VENV)/.ready
	$(call native,release,--output-junit $(CURDIR)/$(RESULTS)/native-release.xml)

# --- the C side under sanitizers and fuzzers --------------------------------

# $(1) preset, $(2) further arguments of ctest
define native
@mkdir -p $(RESULTS)
cmake --preset $(1) --log-level=WARNING
cmake --build --preset $(1) --parallel $(JOBS)
$(NO_ASLR) ctest --preset $(1) --parallel $(JOBS) $(2)
endef

.PHONY: sanitize
sanitize: sanitize-asan sanitize-tsan ## C unit tests under ASan+UBSan and TSan

.PHONY: sanitize-asan sanitize-ubsan sanitize-tsan
sanitize-asan sanitize-ubsan sanitize-tsan: sanitize-%: $(VENV)/.ready
	$(call native,$*,--output-junit $(CURDIR)/$(RESULTS)/native-$*.xml)

.PHONY: free-threaded
free-threaded: libraries ## compile the extensions as a free-threaded CPython would (3.13 and later)
	cmake -S . -B build/free-threaded-$(TAG)$(STRETTO_SYSTEM) --log-level=WARNING \
	    -DSTRETTO_EXTENSIONS=ON -DSTRETTO_WERROR=ON -DCMAKE_C_FLAGS=-DPy_GIL_DISABLED=1 \
	    -DSTRETTO_LIBRARIES=$(LIBRARIES) \
	    -DPython_EXECUTABLE=$(CURDIR)/$(VENV)/bin/python
	cmake --build build/free-threaded-$(TAG)$(STRETTO_SYSTEM) --parallel $(JOBS)

.PHONY: musl
musl: $(VENV)/.ready ## C unit tests with musl instead of glibc (Debian's musl-tools)
	$(call native,musl,--output-junit $(CURDIR)/$(RESULTS)/native-musl.xml)

# Under ASan leaks are not looked for: that needs ptrace, which the emulator lacks.
.PHONY: aarch64
aarch64: $(VENV)/.ready ## C unit tests on an emulated aarch64 (docs/platforms.md)
	tools/in_aarch64
	$(call native,aarch64-release)

# Hours: a test that has passed is not run again until it is compiled anew.
.PHONY: aarch64-asan
aarch64-asan: $(VENV)/.ready ## the same under ASan+UBSan; goes on where it was interrupted
	tools/in_aarch64
	cmake --preset aarch64-asan --log-level=WARNING
	cmake --build --preset aarch64-asan --parallel $(JOBS)
	$(MAKE) --keep-going $(patsubst native/test/%.c,build/aarch64/asan/%.passed,$(wildcard native/test/test_*.c))

build/aarch64/asan/%.passed: build/native-aarch64-asan/%
	@mkdir -p $(@D)
	ctest --preset aarch64-asan -R '^$*$$'
	touch $@

.PHONY: big-pages
big-pages: $(VENV)/.ready ## C unit tests on an emulated aarch64 kernel with pages of 16 KiB
	tools/in_aarch64
	cmake --preset aarch64-release -B build/native-aarch64-static -DSTRETTO_FUZZ=OFF \
	    -DCMAKE_EXE_LINKER_FLAGS=-static --log-level=WARNING
	cmake --build build/native-aarch64-static --parallel $(JOBS)
	tools/big_pages build/native-aarch64-static

# pip runs on this machine: it would take minutes under emulation.
build/aarch64/.packages: $(VENV)/.ready $(wildcard dist/*.whl)
	tools/in_aarch64
	$(PIP) --upgrade --target build/aarch64/venv/lib/python3.13/site-packages \
	    --platform manylinux_2_28_aarch64 --platform manylinux2014_aarch64 \
	    --python-version 3.13 --only-binary=:all: \
	    pytest hypothesis protobuf==7.36.2 websockets dist/stretto-*-cp313-*_aarch64.whl dist/stretto_fidl-*.whl
	touch $@

# The tests take hours. A part that has passed is not run again until dist/ changes.
EMULATED := $(filter-out %__pycache__,$(wildcard tests/unit/*))
.PHONY: aarch64-python
aarch64-python: $(EMULATED:tests/unit/%=build/aarch64/results/%.xml) ## the unit tests with the aarch64 wheel of dist/, emulated

build/aarch64/results/%.xml: build/aarch64/.packages
	@mkdir -p $(@D)
	sed -n 's/^tests/--deselect=&/p' tools/not_emulated.txt > $(@:xml=deselected)
	STRETTO_HYPOTHESIS=quick build/aarch64/venv/bin/python -m pytest -m "not thorough" \
	    tests/unit/$* @$(@:xml=deselected) --junitxml=$@ \
	    -p no:cacheprovider -o faulthandler_timeout=0

.PHONY: fuzz
fuzz: $(VENV)/.ready ## a bounded fuzz run of every target (FUZZ_RUNS=n)
	cmake --preset asan --log-level=WARNING
	cmake --build --preset asan --parallel $(JOBS)
	$(NO_ASLR) tools/fuzz build/native-asan$(STRETTO_SYSTEM) $(FUZZ_RUNS)

# --- looks, measures, ships -------------------------------------------------

.PHONY: lint
lint: lint-format lint-python lint-types lint-c lint-rules docs ## formatters in check mode, ruff, mypy, our own rules, docs

.PHONY: lint-format lint-python lint-types lint-c lint-rules
lint-format: $(VENV)/.ready
	ruff format --check .
lint-python: $(VENV)/.ready
	ruff check .
lint-types: $(VENV)/.ready
	mypy
lint-c: $(VENV)/.ready
	clang-format --dry-run --Werror $(wildcard $(NATIVE_SOURCES))
lint-rules: $(VENV)/.ready
	PYTHONPATH=src $(VENV)/bin/python -m pytest -q tests/meta --ignore tests/meta/test_stubs.py

.PHONY: format
format: $(VENV)/.ready ## format every source in place
	ruff format .
	ruff check --fix-only --quiet .
	clang-format -i $(wildcard $(NATIVE_SOURCES))

$(VENV)/.docs: $(VENV)/.ready
	$(call pip_extras,docs)
	touch $@

.PHONY: docs
docs: $(VENV)/.docs ## the documentation site, in build/site; each warning is an error
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict

.PHONY: bench
bench: install ## every benchmark beside its peers, as one table
	$(call pip_extras,bench)
	$(VENV)/bin/python tools/bench_table.py

.PHONY: generate
generate: $(VENV)/.ready ## the checked-in protobuf classes, again
	PYTHONPATH=src $(VENV)/bin/python -m stretto.protozero.generate

.PHONY: wheels
wheels: $(VENV)/.ready ## manylinux wheels of each CPython, the pure one, stretto-fidl's, in dist/
	$(call pip_extras,wheels)
	tools/wheels

.PHONY: smoke
smoke: ## install the wheels of dist/ into bare environments, and try them
	tools/smoke

.PHONY: clean
clean: ## remove what was built
	rm -rf build dist
