package main

import (
	"path"
	"slices"

	"github.com/lazo-ml/lazo/checkpoint"
)

// flaxLeaves are Flax's names of GoMLX's variables. The axes of dense kernels, channels-last convolution kernels and
// embeddings have the same order.
var flaxLeaves = map[string]string{"weights": "kernel", "biases": "bias", "embeddings": "embedding", "gain": "scale", "offset": "bias"}

// flaxStatistics belong to batch normalization; Flax keeps them in a separate collection.
var flaxStatistics = map[string]string{"mean": "mean", "variance": "var"}

// flaxName returns a variable's name in Flax's flattened dicts ("/dense/weights": "params/dense/kernel"), "" if it is
// not a weight of the model.
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
