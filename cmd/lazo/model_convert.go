package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/gomlx/compute/dtypes"
)

type modelConvert struct {
	Path  string `arg:"" help:"Folder of the Hugging Face hub, or file .gguf."`
	Out   string `arg:"" help:"Folder to write, which transformers loads; or file .gguf, as of llama.cpp, of a Llama, Mistral or Qwen 2 or 3."`
	DType string `name:"dtype" required:"" enum:"bfloat16,float16,float32,q8_0" help:"Of the weights: bfloat16, float16, float32, and of files .gguf also q8_0, blocks of 8-bit numbers. A number above the range of float16 is an error."`
}

func (c modelConvert) Run(s session) error {
	o, err := openPretrained(s.ctx, c.Path, adapterFlag{})
	if err != nil {
		return err
	}
	if from, to := absolute(c.Path), absolute(c.Out); from == to {
		return fmt.Errorf("%s is the folder to read and to write, expected another one to write", c.Out)
	}
	of := map[string]struct {
		dtype dtypes.DType
		gguf  string
	}{"bfloat16": {dtypes.BFloat16, "BF16"}, "float16": {dtypes.Float16, "F16"}, "float32": {dtypes.Float32, "F32"}, "q8_0": {dtypes.Float32, "Q8_0"}}[c.DType]
	o.DType = of.dtype
	network := o.Network()
	switch {
	case filepath.Ext(c.Out) == ggufSuffix:
		err = network.SaveGGUF(c.Out, nil, of.gguf)
	case c.DType == "q8_0":
		err = fmt.Errorf("--dtype q8_0 is for files %s, and %s is a folder to write: expected bfloat16, float16 or float32", ggufSuffix, c.Out)
	default:
		err = network.Save(c.Out, nil)
	}
	if err != nil {
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
