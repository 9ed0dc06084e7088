#!/bin/sh
# What docs/maintain/scale.md is made of, measured on this machine within six minutes where nothing else runs:
#
#	scripts/bench_scale.sh > cmd/bench/scale/testdata/measured.jsonl && go run ./cmd/bench/scale -write
#
# Sums over 2 to 8 ranks in shared memory and over TCP, training steps with and without exchange, and jobs of up to 256
# processes that have their control connections alone.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go build -o "$folder/lazo" ./cmd/lazo
go build -o "$folder/bench" ./cmd/bench
ranks() {
	np=$1
	shift
	cpus=$(nproc)
	NPROC=$((np < cpus ? cpus / np : 1)) timeout 150 "$folder/lazo" run -np "$np" "$folder/bench" -workload exchange "$@"
}
for np in 2 4 8; do ranks $np; done
for np in 3 6; do ranks $np -variant sums; done
# Open MPI's own variables: its sockets instead of shared memory.
for np in 2; do OMPI_MCA_btl=self,tcp OMPI_MCA_pml=ob1 ranks $np -variant sums -over tcp; done
timeout 120 "$folder/bench" -workload control
