#!/usr/bin/env bash
# Tries lazo on an accelerator of this machine, and prints what docs/gpu.md has of it, as Markdown: what runs there, the
# suites, the benchmarks beside JAX on the same device, and memory beside what `lazo plan` says.
#
#   PY=PYTHON scripts/gpu_check.sh [PLUGIN] [PART...]
#
# PLUGIN is cuda (the default; installed if there is none), cuda12, tpu, or the path of a library. With cpu the script
# itself can be tried. PARTS are machine, doctor, suite, conformance, bench, memory; the default is all of them. PYTHON
# has JAX for the device (jax[cuda13]==0.10.2 or as the plugin's version, optax==0.2.8); without PY the peers are left
# out, and the output says so. A part that fails is shown with its last lines; the others go on, and the status is 1.
set -uo pipefail

plugin=${1:-cuda}
shift || true
parts=("$@")
[[ ${#parts[@]} -gt 0 ]] || parts=(machine doctor suite conformance bench memory)
for part in "${parts[@]}"; do
	case $part in
	machine | doctor | suite | conformance | bench | memory) ;;
	*)
		echo "gpu_check: unknown part '$part': expected machine, doctor, suite, conformance, bench or memory" >&2
		exit 2
		;;
	esac
done
cd "$(dirname "$0")/.." || exit 1
go=${GO:-go}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=()

# show NAME COMMAND...: a part's output in full, and how it ended.
show() {
	local name=$1 status=0 start=$SECONDS
	shift
	echo
	echo '```'
	"$@" >"$folder/out" 2>&1 || status=$?
	tail -n 60 "$folder/out"
	echo '```'
	echo
	echo "$name: status $status, $((SECONDS - start)) s."
	[[ $status -eq 0 ]] || failed+=("$name")
}

library=$plugin
case $plugin in
cpu | cuda | cuda12 | tpu)
	if ! library=$($go run ./cmd/lazo install "$plugin"); then
		echo "gpu_check: the plugin $plugin could not be installed" >&2
		exit 1
	fi
	library=${library#*: }
	;;
*)
	if [[ ! -f $plugin ]]; then
		echo "gpu_check: '$plugin' is no plugin: expected cpu, cuda, cuda12, tpu or the path of a library" >&2
		exit 2
	fi
	;;
esac

machine() {
	date -u +%Y-%m-%d
	$go run ./cmd/lazo version
	git describe --always --dirty
	uname -srm
	grep -m1 'model name' /proc/cpuinfo
	echo "$(nproc) processors"
	if command -v nvidia-smi >/dev/null; then
		nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv
	fi
	if [[ -n ${PY-} ]]; then
		"$PY" -c 'import jax, jaxlib; print("JAX", jax.__version__, "jaxlib", jaxlib.__version__, jax.devices())'
	fi
}

# The CPU's figures to 1e-5 are asked for: without TensorFloat-32, which keeps ten bits of each factor.
suite() {
	NVIDIA_TF32_OVERRIDE=0 $go test -count=1 -timeout 30m -v ./managed/strategytest -run '^TestJit$|^TestDataParallel$/^1$' -args -plugin "$plugin" |
		grep -vE '^\s*=== (RUN|PAUSE|CONT|NAME)'
	return "${PIPESTATUS[0]}"
}

conformance() { NVIDIA_TF32_OVERRIDE=0 bash scripts/conformance.sh --own-devices "$library"; }

benches() {
	$go build -o "$folder/bench" ./cmd/bench || return
	if [[ -n ${PY-} ]]; then
		"$PY" -B cmd/bench/python/peers.py "$folder/bench" --plugin "$plugin" --repeats 5 --only tiny,linear,mlp,cnn,matmul,lstm,gpt,generate,ttfs
	else
		echo "PY is not set: without JAX beside it"
		"$folder/bench" -plugin "$plugin" -workload tiny,linear,mlp,cnn,matmul,lstm,gpt,generate,ttfs
	fi
}

# What the compiler says that a step needs, and what the device had in use at most.
memory() {
	$go build -o "$folder/bench" ./cmd/bench && "$folder/bench" -plugin "$plugin" -workload memory -variant peak
}

echo "# lazo on $plugin"
for part in "${parts[@]}"; do
	echo
	echo "## $part"
	case $part in
	machine) show "$part" machine ;;
	doctor) show "$part" "$go" run ./cmd/lazo doctor --plugin "$plugin" ;;
	suite) show "$part" suite ;;
	conformance) show "$part" conformance ;;
	bench) show "$part" benches ;;
	memory) show "$part" memory ;;
	esac
done
echo
if [[ ${#failed[@]} -gt 0 ]]; then
	echo "Failed: ${failed[*]}."
	exit 1
fi
echo "All parts passed."
