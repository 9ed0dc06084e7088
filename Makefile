# What CI runs, and what a person can run part by part. `make help` lists the targets.
GO ?= go
# Packages of long tests get a longer limit than Go's own ten minutes: flaxlike took 29 on two cores at a load of 35.
# Go's own choice of vet's checks is off: lint and quick make all of them, once, and the race detector's build would have them made anew.
# -w: a test binary without DWARF takes half of the CPU seconds to link. Traces of panics and races do not need it.
TEST_FLAGS ?= -timeout 60m -vet=off -ldflags=-w
# A seventh of the Go compiler's CPU seconds would be garbage collection. What it builds is the same, so Go finds it in
# its cache with and without.
export GOFLAGS := $(shell $(GO) env GOFLAGS) '-toolexec=env GOGC=400'
FUZZ_TIME ?= 1m
# A quarter of its CPU seconds would be garbage collection; with this it takes 0.5 GB.
STATICCHECK = GOGC=400 $(GO) tool -modfile=internal/tools/go.mod staticcheck

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install the PJRT plugin for the CPU, and the MPI by which tests start several processes, if there are none
	sh scripts/install_pjrt.sh cpu
	sh scripts/install_pjrt.sh mpi

# All packages, those with the most test files first: go test keeps the order, and a long one at the end would have one
# core alone.
PACKAGES = $$($(GO) list -f '{{len .TestGoFiles}} {{len .XTestGoFiles}} {{.ImportPath}}' ./... | awk '{print $$1 + $$2, $$3}' | sort -rn | cut -d' ' -f2)

.PHONY: test
test: setup ## install what tests need, and run all of them
	$(GO) test $(TEST_FLAGS) $(PACKAGES)

# The packages whose tests need no plugin.
PLAIN = $$($(GO) list ./... | grep -vxF "$$($(GO) list -test -f '{{if .ForTest}}{{.ForTest}} {{join .Deps " "}} {{end}}' ./... | grep -E '/lazo/(internal/pjrt|internal/plugintest) ' | cut -d' ' -f1)")

.PHONY: vet
vet: ## formatting, go vet
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted: $$files"; exit 1; fi
	$(GO) vet ./...

.PHONY: quick
quick: vet ## within a minute or two, without a plugin: build, go vet, formatting, the packages that need no device, the model on GoMLX's Go backend, the rules of the structure
	$(GO) test $(TEST_FLAGS) -short $(PLAIN)
	$(GO) test $(TEST_FLAGS) -short -run '^TestS20_goBackend$$' ./managed/strategytest

.PHONY: size
size: ## lines, exported names and words of each package, next to internal/size/budget.txt
	@$(GO) run ./internal/size

.PHONY: rows
rows: ## the rows of the fault tables (F, R, S, B, D), each with its tests
	@git ls-files '*_test.go' | xargs awk -f scripts/rows.awk | sort -V

# Tests and packages with the line //lazo:norace before them have no race to find, or run programs without the detector:
# long tests of one goroutine, tests that read source, start programs, or build and compare graphs. Nightly has them too.
NORACE = grep -rA1 --include='*_test.go' --exclude-dir='.?*' '^//lazo:norace' .
NORACE_TESTS = $$($(NORACE) | sed -nE 's/.*_test\.go-func (Test[A-Za-z0-9_]*)\(.*/\1/p' | paste -sd'|')
NORACE_PACKAGES = $$($(NORACE) | sed -nE 's|^\./(.*)/[^/]*_test\.go-package .*|/lazo/\1$$|p')
# Tests of these packages with the line //lazo:race before them: several goroutines use one object.
BUT_RACE = grep -rA1 --include='*_test.go' --exclude-dir='.?*' '^//lazo:race' . | grep '_test.go-func'
BUT_RACE_TESTS = $$($(BUT_RACE) | sed -nE 's/.*-func (Test[A-Za-z0-9_]*)\(.*/\1/p' | paste -sd'|')
BUT_RACE_PACKAGES = $$($(BUT_RACE) | sed -E 's|/[^/]*_test\.go-func.*||' | sort -u)

RACE = GORACE=atexit_sleep_ms=100 LAZO_TEST_QUICK=1 $(GO) test $(TEST_FLAGS) -race -gcflags='github.com/gomlx/compute/...=-d=checkptr=0' -short

.PHONY: race
race: setup ## the tests under the race detector
	@# checkptr=0 for compute alone: the products of its Go backend make pointers one element behind a slice, which the detector's build ends.
	@# A process with the detector waits for a second before it ends, for races of goroutines that are left, and some
	@# tests start many: a tenth of a second here.
	$(RACE) -skip "^($(NORACE_TESTS))$$" $$(printf '%s\n' $(PACKAGES) | grep -vE "$(NORACE_PACKAGES)")
	$(RACE) -run "^($(BUT_RACE_TESTS))$$" $(BUT_RACE_PACKAGES)

.PHONY: staticcheck
staticcheck: ## staticcheck, the shell scripts
	$(STATICCHECK) ./...
	sh -n scripts/install_pjrt.sh
	@for script in scripts/*.sh; do bash -n "$$script" || exit 1; done

.PHONY: lint
lint: vet staticcheck ## formatting, go vet, staticcheck, the shell scripts

# etcd's own dependencies take longer to compile than all else here together, and tests of containers need the rights to
# make namespaces: nightly has both.
SLOW_MODULES = dist/etcd examples/containers
MODULES ?= $(filter-out $(SLOW_MODULES) internal/tools/site internal/board/browser examples/notebook,$(patsubst %/go.mod,%,$(shell git ls-files '*/go.mod')))

.PHONY: modules
modules: setup ## the modules of their own, whose dependencies are not lazo's: go vet and tests; nightly has etcd, containers and staticcheck too
	@for module in $(MODULES); do (cd "$$module" && $(GO) vet ./... && $(GO) test $(TEST_FLAGS) ./...) || exit 1; done

# Packages of PLAIN that use what Go has twice, with and without cgo: hosts, users, signals. The sources of all others are
# the same in both builds.
PORTABLE = $$($(GO) list -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}} ' $(PLAIN) | grep -E ' (net|net/http|os/signal|os/user|syscall) ' | cut -d' ' -f1)

.PHONY: portable
portable: ## programs without cgo, and tests of packages with other code then; test has the types on Linux, macOS and Windows, nightly compiles all
	CGO_ENABLED=0 $(GO) test $(TEST_FLAGS) -short $(PORTABLE)
	LAZO_TEST_PORTABLE=1 $(GO) test $(TEST_FLAGS) -run '[wW]ithoutCgo' ./cmd/lazo ./xla

.PHONY: check
check: vet setup ## what CI runs: lint test race modules conformance interop portable
	@# Two at a time, for links and tests that wait leave a core idle: test beside all others. race is late, to find the
	@# programs that test has compiled. vet comes before, and builds what all need; so does setup, and without -o those
	@# that wait for it, test first of all, would begin behind all others.
	$(MAKE) -j2 -o setup --output-sync=target test staticcheck modules conformance race interop portable

.PHONY: bench
bench: setup ## measure: JSON lines, to stand beside the peers'
	$(GO) run ./cmd/bench

REF ?= HEAD
REPEATS ?= 9
HISTORY ?= docs/maintain/history.jsonl

.PHONY: bench-check
bench-check: setup ## a small set of workloads in turns with the bench of REF=HEAD (empty: of the last release): what became slower beyond noise; a failure if anything did
	GO="$(GO)" bash scripts/bench_check.sh "$(REF)" "$(REPEATS)" "$(HISTORY)"

.PHONY: conformance
conformance: setup ## GoMLX's own tests on lazo's backend
	bash scripts/conformance.sh "$$($(GO) run ./cmd/lazo install cpu | sed 's/^[^:]*: //')"

.PHONY: interop
interop: setup ## files exchanged with the Python package safetensors, ids of tokenizers, requests of tritonclient and openai (installed into .tools)
	GO="$(GO)" bash scripts/safetensors_check.sh
	GO="$(GO)" bash scripts/tokenizers_check.sh
	GO="$(GO)" bash scripts/serve_check.sh

.PHONY: pretrained
pretrained: setup ## saved models in transformers, embeddings of all-MiniLM-L6-v2, and ONNX files in ONNX Runtime (torch, 6 GB, is installed into .tools)
	GO="$(GO)" bash scripts/pretrained_check.sh

.PHONY: mlflow
mlflow: setup ## runs recorded with a real MLflow server, read by its own client (mlflow, 1 GB, is installed into .tools)
	GO="$(GO)" bash scripts/mlflow_check.sh

.PHONY: notebook
notebook: setup ## examples/notebook executed by gonb and Jupyter (installed into .tools): its outputs, and a page with them in .tools/notebook
	GO="$(GO)" bash scripts/notebook_check.sh

.PHONY: board
board: ## the board's page in Chromium (Debian's package chromium); SCREENSHOTS=FOLDER keeps pictures
	cd internal/board/browser && $(GO) vet ./... && $(GO) test $(TEST_FLAGS) -count=1 ./... -args -screenshots "$(SCREENSHOTS)"

.PHONY: export-check
export-check: setup ## exported programs, run by JAX (installed into .tools): the same outputs
	GO="$(GO)" bash scripts/export_check.sh

.PHONY: numerics
numerics: setup ## 200 steps of seven models, and ten methods of training, next to JAX: docs/maintain/numerics.md; PY=PYTHON, which has jax and optax, makes JAX's numbers anew
	@if [ -n "$(PY)" ]; then cd nn/testdata && for s in trajectories methods; do JAX_PLATFORMS=cpu $(PY) $$s.py > $$s.new && mv $$s.new $$s.json || exit; done; fi
	$(GO) test $(TEST_FLAGS) -tags nightly -count=1 -v ./nn -run 'TestTrajectories|TestMethods'

.PHONY: site
site: setup ## the website in .site/public: guide, documents, packages, examples with search; checks its links
	GO="$(GO)" bash scripts/site.sh

.PHONY: upstream
upstream: setup ## build and test against the newest GoMLX, compute, go-xla and must that can be had; PACKAGES="./managed ./xla/..." for some tests alone
	GO="$(GO)" bash scripts/upstream.sh $(PACKAGES)

.PHONY: targets
targets: ## a corpus of steps, compiled for a TPU and GPUs that are not there: needs `lazo install tpu` and `lazo install cuda_compile`; docs/maintain/targets.md
	$(GO) test -tags targets -timeout 120m -p 1 -count=1 -v ./managed/strategytest ./internal/hlo ./examples -run TestTargets

.PHONY: release
release: ## prepare VERSION=v0.1.0: versions of the nested modules, a user of each module, changed names, archives of the command in .release
	cd internal/tools && $(GO) run ./release -version "$(VERSION)"

MUTANTS ?= 300
SEED ?= 1

.PHONY: mutants
mutants: setup ## how good the tests are: MUTANTS=300 changes of the code, a sample of SEED=1, and the controls; docs/maintain/testing.md
	$(GO) run ./internal/mutants -controls
	$(GO) run ./internal/mutants -n $(MUTANTS) -seed $(SEED) -with ./managed/strategytest ./loop ./checkpoint ./managed ./strategies ./xla

.PHONY: nightly
nightly: setup ## the long forms: faults in full number, fuzzing; bench-check with the last release
	sh scripts/install_pjrt.sh cpu81
	sh scripts/install_pjrt.sh mpich
	$(GO) test -tags nightly -timeout 120m ./...
	GO="$(GO)" bash scripts/tokenizers_check.sh 100000
	$(RACE) -timeout 120m $(PACKAGES)
	@if $(GO) run ./cmd/lazo install --check tpu && $(GO) run ./cmd/lazo install --check cuda_compile; then $(MAKE) targets; \
		else echo "make targets is left out: it needs lazo install tpu and lazo install cuda_compile"; fi
	@grep -rE '^func Fuzz' --include='*_test.go' $$(find . -name go.mod -not -path ./go.mod -printf '--exclude-dir=%h ' | sed 's|=./[^ ]*/|=|g') . | \
		sed -E 's|^(.*)/[^/]*:func (Fuzz[A-Za-z0-9]*).*|\1 \2|' | while read -r package target; do \
		$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 50x "$$package" </dev/null || exit 1; done
	for system in darwin windows; do CGO_ENABLED=0 GOOS=$$system $(GO) build ./... || exit 1; done
	@# without the bindings, whose tests need cgo
	CGO_ENABLED=0 $(GO) vet $$($(GO) list ./... | grep -vE '/internal/(pjrt|mpi)$$')
	CGO_ENABLED=0 $(GO) test $(TEST_FLAGS) -short $$(printf '%s\n' $(PLAIN) | grep -v '/archtest$$')
	$(MAKE) modules MODULES="$(SLOW_MODULES)"
	@for module in $(MODULES) $(SLOW_MODULES); do (cd "$$module" && GOGC=400 $(GO) tool -modfile=$(CURDIR)/internal/tools/go.mod staticcheck ./...) || exit 1; done
	@# A real Prometheus: Debian's package prometheus.
	cd callbacks/prometheus && $(GO) test -tags nightly ./...
	$(MAKE) mlflow
	$(MAKE) notebook
	$(MAKE) board
	cd data/parquet && $(GO) test -tags nightly -timeout 120m ./... && $(GO) test -run '^$$' -fuzz '^FuzzRead$$' -fuzztime $(FUZZ_TIME) -fuzzminimizetime 50x .
	$(MAKE) bench-check REF=
