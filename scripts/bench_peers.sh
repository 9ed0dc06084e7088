#!/usr/bin/env bash
# Measures lazo beside raw JAX, flax, Keras or PyTorch, in turns, and prints a table of ratios.
#   PY=PYTHON scripts/bench_peers.sh [--repeats N] [--only tiny,mlp,...] [--peer jax,flax,keras,torch,compiled,onnxruntime,sklearn,readers,transformers,llama] [--models FOLDER] [--lines FILE] [--write FILE]
# --peer takes one or several; with --write docs/maintain/peers.txt the tables there are made anew.
# PYTHON needs jax and optax (pip install jax==0.10.2 optax==0.2.8); default python3. --peer flax and --peer keras need
# flax==0.12.8 and keras==3.15.0, and compare lstm and gpt; --peer torch (eager) and --peer compiled (by torch.compile, which needs a C++
# compiler) need torch==2.8.0, both with the fused Adam, and compare mlp, cnn, lstm and gpt; the faster counts.
# --peer onnxruntime needs onnxruntime==1.32.0 and onnx==1.23.2, and compares predict; --peer sklearn scikit-learn==1.9.1, linear.
# --peer readers needs torch, pillow, pandas and pyarrow, and compares images, csv and parquet. --only growth and --only
# serve are no part of other runs; serve needs starlette==1.10.0 and uvicorn[standard]==0.54.0. --peer transformers needs pretrained_requirements.txt, and in
# --models minilm, smollm.gguf (pretrained_check.sh has both) and texts.csv (debian_texts.py).
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${GO:-go}" build -o "$folder/bench" ./cmd/bench
(cd data/parquet && "${GO:-go}" build -o "$folder/bench-parquet" ./bench)
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-3}"
"${PY:-python3}" -B cmd/bench/python/peers.py "$folder/bench" "$@"
