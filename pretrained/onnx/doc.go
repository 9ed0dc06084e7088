// Package onnx trains and uses networks of ONNX files, by github.com/gomlx/onnx-gomlx. It is a module of its own.
//
// Outputs equal those of ONNX Runtime up to rounding. Unimplemented operators and attributes are errors of Open.
// docs/pretrained.md lists what is supported.
package onnx
