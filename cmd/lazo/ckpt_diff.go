package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

type ckptDiff struct {
	folderArg
	A     int64  `arg:"" help:"Step of the one."`
	B     int64  `arg:"" help:"Step of the other."`
	Other string `placeholder:"DIR" help:"Folder of the other, if it is not the same."`
}

func (c ckptDiff) Validate() error {
	if c.Other != "" {
		if err := needFolder(c.Other); err != nil {
			return err
		}
	}
	return c.folderArg.Validate()
}

// Run prints a line per tensor that differs, and exits with 1 then, as diff.
func (c ckptDiff) Run(s session) error {
	other := c.folderArg
	if c.Other != "" {
		other.Dir = c.Other
	}
	a, err := c.load(s, c.A, false)
	if err != nil {
		return err
	}
	b, err := other.load(s, c.B, false)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	same, all := 0, 0
	for _, name := range namesOf(a, b) {
		x, inA := a.Tensor(name)
		y, inB := b.Tensor(name)
		all++
		switch {
		case !inB:
			fmt.Fprintf(table, "%q\tonly in step %d: %v%v\n", name, a.Step, x.DType, x.Dims)
		case !inA:
			fmt.Fprintf(table, "%q\tonly in step %d: %v%v\n", name, b.Step, y.DType, y.Dims)
		case x.DType != y.DType || !slices.Equal(x.Dims, y.Dims):
			fmt.Fprintf(table, "%q\t%v%v\t%v%v\n", name, x.DType, x.Dims, y.DType, y.Dims)
		case bytes.Equal(x.Data, y.Data):
			same++
		default:
			fmt.Fprintf(table, "%q\t%v%v\t%s\n", name, x.DType, x.Dims, distance(x, y))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "%d of %d tensors are the same\n", same, all)
	if same != all {
		return errProblem
	}
	return nil
}

func namesOf(all ...*checkpoint.Checkpoint) (names []string) {
	for _, c := range all {
		for _, t := range c.Tensors {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func distance(x, y checkpoint.Tensor) string {
	switch x.DType {
	case safetensors.F32:
		return largest[float32](x, y)
	case safetensors.F64:
		return largest[float64](x, y)
	}
	return "differs"
}

func largest[F float32 | float64](x, y checkpoint.Tensor) string {
	a, errA := safetensors.Values[F](x.Data)
	b, errB := safetensors.Values[F](y.Data)
	if err := errors.Join(errA, errB); err != nil || len(a) != len(b) {
		return "differs"
	}
	n, far := 0, 0.0
	for i := range a {
		if a[i] != b[i] {
			n++
			far = math.Max(far, math.Abs(float64(a[i])-float64(b[i])))
		}
	}
	return fmt.Sprintf("%d of %d differ, by at most %g", n, len(a), far)
}
