# Everything runs from a virtual environment that the first target sets up.
PYTHON ?= python3
VENV ?= .venv
# The Python of an environment that holds sglang==0.5.23: `make records` and `make selfcheck` need it, `make bench` may have it.
SGLANG_PYTHON ?=
# The Python of an environment that holds vllm==0.33.0: `make records-vllm` and `make parity-vllm` need it; `make selfcheck`
# takes it or that of SGLang.
VLLM_PYTHON ?=
# How many random drafts `make parity` makes, and from which seed.
PARITY_COUNT ?= 5000
PARITY_SEED ?= 0
# The torch of the warm-up's tests: one that is known to pass, for CI alone. The extra itself pins none.
TORCH ?= torch==2.13.0

.PHONY: audit test test-warmup lint format bench bench-load bench-sweep constraints fuzz parity parity-vllm selfcheck records records-vllm clean
.DELETE_ON_ERROR:

audit: $(VENV)/.audit
	$(VENV)/bin/dflash-audit fixtures/seed-w8a16

# By files, for what the tests of one set up is set up once then. WORKERS=0 runs them in one process.
WORKERS ?= auto
test: $(VENV)/.test
	$(VENV)/bin/python -m pytest --numprocesses $(WORKERS) --maxprocesses 8 --dist loadfile

# One thread: the drafts of the tests are small, and threads that wait for each other are what would take the time.
test-warmup: $(VENV)-warmup/.test
	OMP_NUM_THREADS=1 $(VENV)-warmup/bin/python -m pytest -m warmup

lint: $(VENV)/.lint
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(VENV)/.lint
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

bench: $(VENV)/.audit
	$(VENV)/bin/python scripts/bench.py $(if $(SGLANG_PYTHON),--sglang-python $(SGLANG_PYTHON))

# An environment of its own: what another holds beside the audit is no business of the action's.
constraints:
	rm -rf $(VENV)-constraints && $(PYTHON) -m venv $(VENV)-constraints
	$(VENV)-constraints/bin/python -m pip install --quiet .
	{ grep '^#' constraints.txt; $(VENV)-constraints/bin/python -m pip freeze --exclude dflash-audit; } > $(VENV)-constraints/new
	mv $(VENV)-constraints/new constraints.txt
	rm -rf $(VENV)-constraints

bench-sweep: $(VENV)/.audit
	$(VENV)/bin/python scripts/bench_sweep.py

bench-load: $(VENV)/.test
	$(VENV)/bin/python -m pip install --quiet numpy
	$(VENV)/bin/python scripts/bench_load.py $(if $(SGLANG_PYTHON),--sglang-python $(SGLANG_PYTHON))

# So many seconds for each target. atheris 3 has wheels for CPython 3.11 to 3.13 on Linux.
FUZZ_SECONDS ?= 60
fuzz: $(VENV)-fuzz/.test
	for name in header index matcher config draft checkpoint; do \
	  PYTHONPATH=. $(VENV)-fuzz/bin/python -m fuzzing.run $$name $(FUZZ_SECONDS) || exit 1; done

selfcheck:
	PYTHONPATH=. $(or $(SGLANG_PYTHON),$(VLLM_PYTHON),$(error give SGLANG_PYTHON=… or VLLM_PYTHON=…)) -m dflash_audit selfcheck

# A night's work: the whole count on an H200, a tenth of it on each kind of card beside it.
parity: $(VENV)/.test
	for card in h200 a100 l40s b200 rtx5090 t4; do \
	  count=$(PARITY_COUNT); [ $$card = h200 ] || count=$$((count / 10)); \
	  OMP_NUM_THREADS=1 PYTHONPATH=. nice $(VENV)/bin/python scripts/random_parity.py --gpu $$card --count $$count \
	    --seed $(PARITY_SEED) --record build/parity/$$card-$(PARITY_SEED).json \
	    --sglang-python $(or $(SGLANG_PYTHON),$(error give SGLANG_PYTHON=…, a Python that holds sglang==0.5.23 or 0.5.19)) \
	  || differ=1; \
	done; [ -z "$$differ" ]

parity-vllm: $(VENV)/.test
	for card in h200 a100 l40s b200 rtx5090 t4; do \
	  count=$(PARITY_COUNT); [ $$card = h200 ] || count=$$((count / 10)); \
	  OMP_NUM_THREADS=1 PYTHONPATH=. nice $(VENV)/bin/python scripts/random_parity.py --gpu $$card --count $$count \
	    --seed $(PARITY_SEED) --record build/parity/vllm-$$card-$(PARITY_SEED).json \
	    --vllm-python $(or $(VLLM_PYTHON),$(error give VLLM_PYTHON=…, a Python that holds vllm==0.33.0)) \
	  || differ=1; \
	done; [ -z "$$differ" ]

records:
	$(or $(SGLANG_PYTHON),$(error give SGLANG_PYTHON=…, a Python that holds sglang==0.5.23)) scripts/record_cases.py fixtures/cases fixtures/fuzz
	$(SGLANG_PYTHON) scripts/record_fills.py fixtures/cases fixtures/fuzz fixtures/random fixtures/regressions
	$(SGLANG_PYTHON) scripts/record_reference.py fixtures/reference/sglang.safetensors
	$(SGLANG_PYTHON) scripts/record_unpacked.py fixtures/unpacked

records-vllm:
	$(or $(VLLM_PYTHON),$(error give VLLM_PYTHON=…, a Python that holds vllm==0.33.0)) scripts/record_vllm_cases.py \
	  $(foreach group,cases fuzz random random-vllm regressions rules published mended differences,fixtures/$(group))

clean:
	rm -rf $(VENV) $(VENV)-warmup $(VENV)-fuzz .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(VENV)/bin/python $(VENV)-warmup/bin/python $(VENV)-fuzz/bin/python: %/bin/python:
	$(PYTHON) -m venv $*

$(VENV)/.audit: pyproject.toml | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test $(VENV)/.lint: $(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --editable '.[$*]'
	touch $@

$(VENV)-fuzz/.test: pyproject.toml | $(VENV)-fuzz/bin/python
	$(VENV)-fuzz/bin/python -m pip install --quiet --editable '.[test]' 'atheris>=3,<4'
	touch $@

$(VENV)-warmup/.test: pyproject.toml | $(VENV)-warmup/bin/python
	$(VENV)-warmup/bin/python -m pip install --quiet '$(TORCH)'
	$(VENV)-warmup/bin/python -m pip install --quiet --editable '.[test,warmup]'
	touch $@
