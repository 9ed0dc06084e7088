// Package onnx trains and uses networks of ONNX files, by github.com/gomlx/onnx-gomlx. It is a module of its own.
//
// Outputs equal those of ONNX Runtime up to rounding. Operators and attributes that are not implemented are errors of
// Open. Batches have the file's names of inputs and outputs. docs/pretrained.md has what is supported.
package onnx
