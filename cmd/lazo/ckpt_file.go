package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

type ckptExport struct {
	folderArg
	File string `arg:"" help:"File to write; it must not be there."`
	stepArg
	All bool `help:"All tensors, with the optimizer's and the history; else parameters alone."`
	Jax bool `name:"jax" help:"Names without the slash in front, as nested dicts of JAX are flattened: conv_0/weights."`
}

func (c ckptExport) Run(s session) (err error) {
	f, err := c.read()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	at, err := c.load(s, f)
	if err != nil {
		return err
	}
	chosen := map[string]checkpoint.Tensor{}
	var list []safetensors.Tensor
	parameter, err := parametersOf(at)
	if err != nil {
		return err
	}
	for _, t := range at.Tensors {
		if !c.All && !parameter(t.Name) {
			continue
		}
		if c.Jax {
			t.Name = strings.TrimPrefix(t.Name, "/")
		}
		chosen[t.Name] = t
		list = append(list, safetensors.Tensor{Name: t.Name, DType: t.DType, Dims: t.Dims})
	}
	safetensors.Sort(list)
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(c.File))
		}
	}()
	w, err := safetensors.NewWriter(file, list, map[string]string{"format": "pt", "step": fmt.Sprint(at.Step)})
	if err != nil {
		return err
	}
	for _, t := range list {
		if _, err := w.Write(t.Name, chosen[t.Name].Data); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), file.Sync()); err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "step %d: %d tensors in %s\n", at.Step, len(list), c.File)
	return nil
}

// parametersOf tells which tensors are parameters: those that the state says are trainable; of a checkpoint that says
// nothing, all.
func parametersOf(c *checkpoint.Checkpoint) (func(name string) bool, error) {
	var variables map[string]struct {
		Trainable bool
		Group     int
		Train     bool
	}
	switch err := c.Section("variables", &variables); {
	case errors.Is(err, checkpoint.ErrNoSection):
		return func(string) bool { return true }, nil
	case err != nil:
		return nil, err
	}
	return func(name string) bool { return variables[name].Trainable }, nil
}

type ckptImport struct {
	File string `arg:"" type:"existingfile" help:"File of safetensors."`
	Dir  string `arg:"" help:"Folder of checkpoints; made if it is not there."`
	Step int64  `default:"0" help:"Step that the checkpoint gets."`
}

// Run makes a checkpoint that State.Transfer can take tensors of; a run cannot go on from it.
func (c ckptImport) Run(s session) (err error) {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	r, err := safetensors.NewReader(file, info.Size(), safetensors.Limits{})
	if err != nil {
		return err
	}
	var content checkpoint.Content
	for t := range r.Tensors() {
		data, _, err := r.Read(t.Name)
		if err != nil {
			return err
		}
		content.Tensors = append(content.Tensors, checkpoint.Tensor{Name: t.Name, DType: t.DType, Dims: t.Dims, Data: data})
	}
	f, err := checkpoint.Open(c.Dir, checkpoint.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Save(s.ctx, checkpoint.Step(c.Step), content); err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "step %d: %d tensors in %s\n", c.Step, len(content.Tensors), c.Dir)
	return nil
}
