package main

import (
	"path"
	"slices"

	"github.com/lazo-ml/lazo/checkpoint"
)

// flaxLeaves are Flax's names of what GoMLX's layers keep. Dense kernels, kernels of convolutions with channels last
// and embeddings have their axes in the same order there.
var flaxLeaves = map[string]string{"weights": "kernel", "biases": "bias", "embeddings": "embedding", "gain": "scale", "offset": "bias"}

// flaxStatistics are those of batch normalisation, which Flax keeps in a collection of their own.
var flaxStatistics = map[string]string{"mean": "mean", "variance": "var"}

// flaxName is the name in Flax's nested dicts, flattened by slashes, of a variable ("/dense/weights":
// "params/dense/kernel"), "" if it is none of the model's weights.
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

// selected are the tensors to be written, under the names that they get.
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
