package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/gomlx/compute/dtypes"
)

type modelConvert struct {
	Path  string `arg:"" help:"Folder of the Hugging Face hub, or file .gguf."`
	Out   string `arg:"" help:"Folder to write, which transformers loads."`
	DType string `name:"dtype" required:"" enum:"bfloat16,float16,float32" help:"Of the weights: bfloat16, float16 or float32. A number above the range of float16 is an error."`
}

func (c modelConvert) Run(s session) error {
	o, err := openPretrained(s.ctx, c.Path)
	if err != nil {
		return err
	}
	if from, to := absolute(c.Path), absolute(c.Out); from == to {
		return fmt.Errorf("%s is the folder to read and to write, expected another one to write", c.Out)
	}
	o.DType = map[string]dtypes.DType{"bfloat16": dtypes.BFloat16, "float16": dtypes.Float16, "float32": dtypes.Float32}[c.DType]
	network := o.Network()
	if err := network.Save(c.Out, nil); err != nil {
		return err
	}
	if unused := network.Unused(); len(unused) > 0 {
		line(s.stderr, "left out", "%d tensors that the model's head does not use: %s", len(unused), strings.Join(unused[:min(5, len(unused))], ", "))
	}
	for _, reason := range o.is.Refused {
		line(s.stderr, "left out", "%s", reason)
	}
	_, err = fmt.Fprintln(s.stdout, plain(c.Out))
	return err
}

func absolute(path string) string {
	if all, err := filepath.EvalSymlinks(path); err == nil {
		path = all
	}
	if all, err := filepath.Abs(path); err == nil {
		path = all
	}
	return path
}
