package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/xla"
)

const firstStepChild = "ttfs-child"

// seconds since process start; the floor is the plugin's loading and compilation
type stages struct {
	Open  float64 `json:"imports"`
	Built float64 `json:"model built"`
	First float64 `json:"first step"`
	Floor float64 `json:"floor"`
}

func timeToFirstStep(ctx context.Context, b *bench) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := b.fresh(ctx, self); err != nil || !b.wants(cached) {
		return err
	}
	dir, err := os.MkdirTemp("", "lazo-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all, err := b.firstSteps(ctx, self, dir)
	if err != nil {
		return err
	}
	values := make([]float64, len(all))
	for i, s := range all {
		values[i] = s.First
	}
	return b.emit(line{Workload: "ttfs", Variant: cached, Unit: "s"}, values)
}

const cached = "first step cached"

func (b *bench) fresh(ctx context.Context, self string) error {
	stages := []struct {
		name, unit string
		of         func(stages) float64
	}{
		{"imports", "s", func(s stages) float64 { return s.Open }},
		{"model built", "s", func(s stages) float64 { return s.Built }},
		{"first step", "s", func(s stages) float64 { return s.First }},
		{"floor", "s", func(s stages) float64 { return s.Floor }},
		{"first step / floor", "ratio", func(s stages) float64 { return s.First / s.Floor }},
	}
	wanted := false
	for _, stage := range stages {
		wanted = wanted || b.wants(stage.name)
	}
	if !wanted {
		return nil
	}
	all, err := b.firstSteps(ctx, self, "")
	if err != nil {
		return err
	}
	for _, stage := range stages {
		if !b.wants(stage.name) {
			continue
		}
		values := make([]float64, len(all))
		for i, s := range all {
			values[i] = stage.of(s)
		}
		if err := b.emit(line{Workload: "ttfs", Variant: stage.name, Unit: stage.unit}, values); err != nil {
			return err
		}
	}
	return nil
}

// A process per repeat, after one that warms the caches.
func (b *bench) firstSteps(ctx context.Context, self, cache string) (all []stages, err error) {
	for i := range b.repeats + 1 {
		if i > 0 {
			if err := b.turn(ctx); err != nil {
				return nil, err
			}
		}
		var stdout bytes.Buffer
		child := exec.CommandContext(ctx, self, firstStepChild, strconv.FormatInt(time.Now().UnixNano(), 10), b.plugin, cache)
		child.Stdout, child.Stderr = &stdout, os.Stderr
		if err := child.Run(); err != nil {
			return nil, fmt.Errorf("child: %w", err)
		}
		var s stages
		if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("child said %q: %w", stdout.Bytes(), err)
		}
		if i > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}

func firstStep(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) != 3 {
		return fmt.Errorf("%s takes a start time, a plugin and a folder or nothing, got %q", firstStepChild, args)
	}
	nano, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return err
	}
	since := func() float64 { return time.Since(time.Unix(0, nano)).Seconds() }
	set, err := random("cnn128")
	if err != nil {
		return err
	}
	b := &bench{plugin: args[1]}
	opening := time.Now()
	var options []xla.Option
	if args[2] != "" {
		options = append(options, xla.CompileCache(args[2], 0))
	}
	r, err := b.open(ctx, options...)
	if err != nil {
		return err
	}
	s := stages{Floor: time.Since(opening).Seconds(), Open: since()}
	w := trained["cnn"]
	state, err := w.newState(r, 0)
	if err != nil {
		return err
	}
	step := managed.TrainStep(w.report("log"))
	defer func() { err = errors.Join(err, step.Close(), state.Close(), r.Close()) }()
	s.Built = since()
	for batch, err := range set.Batches(128).All() {
		if err != nil {
			return err
		}
		_, logs, err := step.Step(ctx, state, batch)
		if err != nil {
			return err
		}
		if _, err := logs.Float("loss"); err != nil {
			return err
		}
		break
	}
	s.First = since()
	s.Floor += step.CompileTime().Seconds()
	return json.NewEncoder(stdout).Encode(s)
}
