package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

type ckptExport struct {
	folderArg
	File string `arg:"" help:"File to write; it must not be there."`
	stepArg
	All  bool `xor:"what" help:"All tensors, with the optimizer's and the history; else parameters alone."`
	Flax bool `xor:"what" help:"Names of Flax's nested dicts, flattened by slashes: params/dense/kernel; with the statistics of batch normalisation."`
}

func (c ckptExport) Run(s session) (err error) {
	at, err := c.load(s, c.Step, c.Step < 0)
	if err != nil {
		return err
	}
	tensors, err := c.selected(at)
	if err != nil {
		return err
	}
	chosen := map[string]checkpoint.Tensor{}
	var list []safetensors.Tensor
	for _, t := range tensors {
		chosen[t.Name] = t
		list = append(list, safetensors.Tensor{Name: t.Name, DType: t.DType, Dims: t.Dims})
	}
	safetensors.Sort(list)
	var sum safetensors.Checksum
	for _, t := range list {
		sum = sum.Update(chosen[t.Name].Data)
	}
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(c.File))
		}
	}()
	w, err := safetensors.NewWriter(file, list, map[string]string{
		"format": "pt", "step": fmt.Sprint(at.Step), safetensors.ChecksumKey: sum.String(),
	})
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
	fmt.Fprintf(s.stdout, "step %d: %d tensors in %s\n", at.Step, len(list), plain(c.File))
	return nil
}

// Without information all tensors are trainable.
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
	Path     string `arg:"" type:"existingpath" help:"File of safetensors; with --from gomlx a folder of GoMLX's checkpoints, or the .json file of one."`
	Dir      string `arg:"" help:"Folder of checkpoints; made if it is not there."`
	From     string `enum:"safetensors,gomlx" default:"safetensors" help:"What wrote it: safetensors or gomlx."`
	Step     int64  `default:"-1" help:"Step that the checkpoint gets; else that of GoMLX's file, or 0."`
	MaxBytes int64  `placeholder:"N" help:"Memory that variables of a compressed GoMLX checkpoint may take; else twice the file and 32 MB."`
}

// Run makes a checkpoint for State.Transfer; a run cannot resume from it.
func (c ckptImport) Run(s session) (err error) {
	step, content, err := c.read()
	if err != nil {
		return err
	}
	if c.Step >= 0 {
		step = checkpoint.Step(c.Step)
	}
	f, err := checkpoint.Open(c.Dir, checkpoint.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Save(s.ctx, step, content); err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "step %d: %d tensors in %s\n", step, len(content.Tensors), plain(c.Dir))
	return nil
}

func (c ckptImport) read() (checkpoint.Step, checkpoint.Content, error) {
	if c.From == "safetensors" {
		content, err := readSafetensors(c.Path)
		return 0, content, err
	}
	at, err := checkpoint.ImportGoMLX(c.Path, c.MaxBytes)
	if err != nil {
		return 0, checkpoint.Content{}, err
	}
	return at.Step, at.Content(), nil
}

func readSafetensors(path string) (content checkpoint.Content, err error) {
	list, elements, _, err := safetensors.ReadFile(path, safetensors.Limits{})
	if err != nil {
		return content, err
	}
	for i, t := range list {
		content.Tensors = append(content.Tensors, checkpoint.Tensor{Name: t.Name, DType: t.DType, Dims: t.Dims, Data: elements[i]})
	}
	return content, nil
}
