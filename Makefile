# Every target sets up .venv by itself; a second call reuses it until pyproject.toml or constraints.txt change.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-all bench lint clean

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/python scripts/demo.py --out runs/demo

test: $(READY)
	$(BIN)/python -m pytest

test-all: $(READY)
	$(BIN)/python -m pytest -m ''

bench: $(READY)
	$(BIN)/python scripts/benchmark.py matching --out runs/matching.json
	$(BIN)/python scripts/benchmark.py steps --out runs/steps.json
	$(BIN)/python scripts/benchmark.py steps --envs Market-v0 --scenarios online online-elastic --steps 2000 --num-envs 64 --out runs/market-steps.json
	$(BIN)/python scripts/benchmark.py replay --out runs/replay.json
	$(BIN)/python scripts/benchmark.py train --out runs/train.json

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv build dist *.egg-info
