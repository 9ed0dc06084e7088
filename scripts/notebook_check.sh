#!/usr/bin/env bash
# Executes examples/notebook/digits.ipynb with gonb, of the version in examples/notebook/go.mod, and checks its outputs.
#
#   scripts/notebook_check.sh
#
# gonb and the packages of notebook_requirements.txt are installed into .tools/notebook, where digits.html is the page with outputs.
# PYTHON (default python3, 3.11 or later) makes that environment.
set -euo pipefail

cd "$(dirname "$0")/.."
GO=${GO:-go}
environment=$PWD/.tools/notebook
if ! cmp -s scripts/notebook_requirements.txt "$environment/installed"; then
	rm -rf "$environment"
	"${PYTHON:-python3}" -m venv "$environment"
	"$environment/bin/pip" install --quiet --disable-pip-version-check --requirement scripts/notebook_requirements.txt
	cp scripts/notebook_requirements.txt "$environment/installed" # last: what was broken off is made again
fi
cd examples/notebook
"$GO" vet ./...
"$GO" build -o "$environment/bin/" github.com/janpfeifer/gonb golang.org/x/tools/cmd/goimports
export PATH=$environment/bin:$PATH JUPYTER_DATA_DIR=$environment/share/jupyter
gonb --install --force_deps --raw_error 2>/dev/null # without gopls, which completes what a person types
# A cell waits for its program to be built.
jupyter-nbconvert --execute --ExecutePreprocessor.timeout=1800 --to notebook --output-dir "$environment" --output executed digits.ipynb
jupyter-nbconvert --to html --output-dir "$environment" --output digits "$environment/executed.ipynb"
"$GO" test -count=1 -v . -args -executed "$environment/executed.ipynb"
