# `make` alone prints what there is. Every target uses the environment whose python comes
# first on PATH, or PYTHON=...; .ci/run makes environments of its own.
PYTHON ?= python
# Compiled modules, whose stubs must agree with them; mypy reads the others themselves.
STUBBED = $(subst /,.,$(patsubst %.pyi,%,$(shell find stagedad -name '_*.pyi')))
SOURCES = $(shell find cuda -name '*.cu' -o -name '*.cuh') $(wildcard stagedad/include/*)

.DEFAULT_GOAL = help
.PHONY: help install build debug clean size test soak lint threads bench bench-report instructions dist ci

help:  ## show this help
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

install:  ## editable install with all development tools
	$(PYTHON) -m pip install --editable '.[cli,test,lint]' 'setuptools>=77' 'cython>=3.1,<4'

build:  ## compile in place
	$(PYTHON) setup.py build_ext --inplace

debug:  ## compile in place with checks and annotation (build/cython-debug/*.html)
	STAGEDAD_DEBUG=1 $(PYTHON) setup.py build_ext --inplace

clean:  ## remove what a build leaves
	rm -rf build dist *.egg-info
	find stagedad \( -name '*.so' -o -name '_gen_*' \) -delete

size:  ## lines per file and folder, beside the sizes to aim for
	@$(PYTHON) .ci/size.py

test:  ## unit, golden, law and example tests
	pytest

soak:  ## the slow tests and ten times the random examples
	STAGEDAD_SOAK=1 pytest

lint:  ## ruff, mypy, stubtest, cython-lint, clang-format
	ruff check .
	ruff format --check .
	mypy
	cd tests && stubtest --mypy-config-file ../pyproject.toml --allowlist stubtest.allow \
	    --ignore-unused-allowlist --ignore-disjoint-bases $(STUBBED)
	cython-lint pyx
	$(if $(SOURCES),clang-format --dry-run -Werror $(SOURCES))

threads:  ## eight threads on one program, compiled with gcc's ThreadSanitizer
	STAGEDAD_SANITIZE=thread $(PYTHON) setup.py -q build -b build/thread --build-lib build/thread/lib
	cd build/thread && PYTHONPATH=lib OPENBLAS_NUM_THREADS=1 setarch -R \
	    env LD_PRELOAD=$$(gcc -print-file-name=libtsan.so) $(PYTHON) ../../tests/run/test_threads.py

bench:  ## run bench/
	pytest bench

bench-report:  ## the tables of targets with the measured column filled
	$(PYTHON) bench/report.py

instructions:  ## instructions executed by small calls, counted by callgrind
	$(PYTHON) bench/instructions.py

dist:  ## sdist -> wheel -> fresh environment -> tests, sources out of reach
	.ci/dist

ci:  ## what must pass before a change lands
	.ci/run
