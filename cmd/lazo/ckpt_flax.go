package main

import (
	"path"
	"slices"

	"github.com/lazo-ml/lazo/checkpoint"
)

// Flax's names of GoMLX's variables, with equal axes of dense kernels, channels-last convolution kernels and
// embeddings.
var flaxLeaves = map[string]string{"weights": "kernel", "biases": "bias", "embeddings": "embedding", "gain": "scale", "offset": "bias"}

// Batch normalization's are a separate collection in Flax.
var flaxStatistics = map[string]string{"mean": "mean", "variance": "var"}

// A name of Flax's flattened dicts ("/dense/weights": "params/dense/kernel"), "" unless it is a weight.
func flaxName(c *checkpoint.Checkpoint, name string, parameter func(string) bool) string {
	scope, leaf := path.Split(name)
	_, normalises := c.Tensor(scope + "avg_weight")
	if statistic, ok := flaxStatistics[leaf]; ok && normalises {
		return path.Join("batch_stats", scope, statistic)
	}
	if !parameter(name) || leaf == "avg_weight" {
		return ""
	}
	if other, ok := flaxLeaves[leaf]; ok {
		leaf = other
	}
	return path.Join("params", scope, leaf)
}

func (c ckptExport) selected(at *checkpoint.Checkpoint) ([]checkpoint.Tensor, error) {
	parameter, err := parametersOf(at)
	if err != nil {
		return nil, err
	}
	chosen := slices.Clone(at.Tensors)
	for i := range chosen {
		t := &chosen[i]
		switch {
		case c.Flax:
			t.Name = flaxName(at, t.Name, parameter)
		case !c.All && !parameter(t.Name):
			t.Name = ""
		}
	}
	return slices.DeleteFunc(chosen, func(t checkpoint.Tensor) bool { return t.Name == "" }), nil
}
