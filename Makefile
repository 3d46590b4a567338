# Evalsite's stable commands. `make env` builds everything the others need.
PYTHON ?= python3
WORKERS ?= auto
BIN := .venv/bin
STAMP := .venv/.lock-installed

.PHONY: env demo test cases attacks agreement peers crash-groups bench bench-load lint lock

env:
	@PYTHON="$(PYTHON)" STAMP="$(STAMP)" sh .ci/env

demo: env
	@$(BIN)/python manage.py demo $(if $(filter-out 0,$(ONCE)),--once) $(if $(PORT),--port $(PORT))

test: env
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS)

cases: env
	$(BIN)/python tests/cases.py

attacks: env
	$(BIN)/python tests/attacks/run.py --all $(ARGS)

agreement: env
	$(BIN)/python tests/agreement/run.py $(ARGS)

peers: env
	@sh .ci/peers

crash-groups: env
	$(BIN)/python tests/benchmarks/crash_groups.py --data var/crash-groups $(ARGS)

bench: env
	$(BIN)/python tests/benchmarks/bench.py $(ARGS)

bench-load: env
	$(BIN)/python tests/benchmarks/load_independence.py $(ARGS)

lint: env
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy evalsite grading leaderboard
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run

lock:
	@command -v uv >/dev/null || { echo "make lock needs uv: $(PYTHON) -m pip install uv" >&2; exit 1; }
	uv pip compile pyproject.toml --universal --python-version 3.11 --all-extras \
	  --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements.lock
