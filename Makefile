# Every target starts from nothing: it makes the virtual environment and installs what it needs.
# `make demo` installs the product alone (RUN), `make serve` also what the HTTP door,
# descriptions and releases need (SERVER);
# all others install the tools of a developer (STAMP).
PYTHON ?= python3
BIN := .venv/bin
RUN := .venv/.run
SERVER := .venv/.server
STAMP := .venv/.installed
CLIENTS := .venvs/.clients
SUPERSET := .venvs/.superset
PGADMIN := .venvs/.pgadmin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
export PYTHONPATH := src

.PHONY: demo serve test clients slow coverage check docs dist bench lock system system-slow clean

demo: $(RUN)
	$(BIN)/discreet demo

# The demo town behind its doors; prints what to type. A password is printed once, when the user is made.
serve: $(SERVER)
	test -e town/town.yaml || $(BIN)/discreet demo
	$(BIN)/discreet user list town/town.yaml | grep -q "^bob " || $(BIN)/discreet user add town/town.yaml bob
	$(BIN)/discreet serve town/town.yaml --http :8080

test: $(STAMP) system $(CLIENTS)
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal --timeout 300
	@cat .venv/.missing

slow: $(STAMP) system-slow $(CLIENTS) $(SUPERSET) $(PGADMIN)
	$(BIN)/python -m pytest -m slow -n 2 --dist worksteal --real-chance
	@cat .venv/.missing

# Branch by branch, of what a privacy review reads: at least 98 in a hundred.
TRUSTED := */discreet/noise/*,*/discreet/mechanisms/*,*/discreet/accounting/*,*/discreet/ledger/*
TRUSTED := $(TRUSTED),*/discreet/vault/*,*/discreet/algebra/*,*/discreet/door.py,*/discreet/asking/view.py,*/discreet/sql/*
coverage: $(STAMP)
	$(BIN)/python -m coverage run -m pytest -m "not slow" tests/noise tests/mechanisms tests/accounting tests/ledger \
	  tests/sql tests/fuzz tests/synthetic tests/continual tests/test_*.py
	$(BIN)/python -m coverage report --include="$(TRUSTED)" --show-missing --skip-covered --fail-under=98

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check src tests bench
	$(BIN)/mypy

# A site of HTML in site/, to be opened from the file: it loads nothing from elsewhere.
# Without --quiet, under which mkdocs counts no warning and --strict fails at nothing.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

# A wheel and a source archive, their bill of materials and checksums; signed by KEY, an SSH key, if one is named.
dist: $(STAMP)
	rm -rf dist
	$(BIN)/uv build -q --no-build-isolation --python $(BIN)/python --out-dir dist .
	$(BIN)/python packaging/dist.py dist $(KEY)

bench: $(STAMP)
	@for each in bench/*.py; do echo "== $$each"; $(BIN)/python $$each || exit 1; done

# Hash-pinned and without addresses: written anew after a change in pyproject.toml.
lock: $(STAMP)
	$(COMPILE) pyproject.toml --group build -o requirements/run.txt
	$(COMPILE) pyproject.toml --extra fast --extra science --extra server -c requirements/run.txt -o requirements/server.txt
	$(COMPILE) pyproject.toml --all-extras --group dev -c requirements/run.txt -o requirements/dev.txt
	$(COMPILE) --group clients -o requirements/clients.txt
	$(COMPILE) --group superset -o requirements/superset.txt
	$(COMPILE) --group pgadmin -o requirements/pgadmin.txt
COMPILE := $(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11

$(BIN)/python:
	$(PYTHON) -m venv .venv

$(RUN): requirements/run.txt pyproject.toml | $(BIN)/python
	$(PIP) --no-compile --require-hashes -r requirements/run.txt
	$(PIP) --no-deps --no-build-isolation -e .
	touch $(RUN)

$(SERVER): requirements/server.txt pyproject.toml | $(RUN)
	$(PIP) --no-compile --require-hashes -r requirements/server.txt
	touch $(SERVER)

$(STAMP): requirements/dev.txt pyproject.toml | $(BIN)/python
	$(PIP) "uv>=0.5"
	$(BIN)/uv pip install -q --python $(BIN)/python --compile-bytecode --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	touch $(RUN) $(SERVER) $(STAMP)

# Real clients of Postgres, for the tests of its door: apart, so that what they need changes nothing of ours.
clients: $(CLIENTS)
$(CLIENTS): requirements/clients.txt tests/server/clients/package-lock.json | $(STAMP)
	test -x .venvs/clients/bin/python || $(PYTHON) -m venv .venvs/clients
	$(BIN)/uv pip install -q --python .venvs/clients/bin/python --require-hashes -r requirements/clients.txt
	mkdir -p .venvs/node
	cp tests/server/clients/package.json tests/server/clients/package-lock.json .venvs/node
	! command -v npm >/dev/null || npm ci --prefix .venvs/node --no-audit --no-fund --silent
	touch $(CLIENTS)

$(SUPERSET) $(PGADMIN): .venvs/.%: requirements/%.txt | $(STAMP)
	test -x .venvs/$*/bin/python || $(PYTHON) -m venv .venvs/$*
	$(BIN)/uv pip install -q --python .venvs/$*/bin/python --require-hashes -r requirements/$*.txt
	touch $@

# Debian packages that some tests need. Where they cannot be installed, the end of the run says which tests lack them;
# with CI=true that is a failure.
system: $(STAMP)
	@sh tests/system.sh .venv/.missing

system-slow: $(STAMP)
	@sh tests/system.sh .venv/.missing slow

clean:
	rm -rf site .venv .venvs .mypy_cache .ruff_cache .pytest_cache
