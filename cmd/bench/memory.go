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
	"path/filepath"
	"strconv"

	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const memoryChild = "memory-child"

// 10 bias-free layers of 3,162 x 3,162: state with Adam 1.2 GB, gradients 0.4 GB.
const (
	memoryLayers, memoryWidth, memoryBatch, memorySteps = 10, 3_162, 16, 5
	memoryState                                         = 3 * 4 * memoryLayers * memoryWidth * memoryWidth
	memoryLimit                                         = (memoryState + memoryState/3) * 115 / 100
)

func memory(ctx context.Context, b *bench) error {
	if b.wants("peak") { // first: a second process may get no memory of a device in use
		if err := peaks(ctx, b); err != nil {
			return err
		}
	}
	return floors(ctx, b)
}

// With JAX, if PY names a Python with jax and optax.
func peaks(ctx context.Context, b *bench) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := b.pass(exec.CommandContext(ctx, self, memoryChild, b.plugin)); err != nil {
		return err
	}
	python := os.Getenv("PY")
	if python == "" {
		fmt.Fprintln(os.Stderr, "memory: JAX is left out: set PY to a Python with jax and optax")
		return nil
	}
	child := exec.CommandContext(ctx, python, filepath.Join("cmd", "bench", "python", "bench_memory.py"))
	for _, n := range []int{memoryLayers, memoryWidth, memoryBatch, memorySteps} {
		child.Args = append(child.Args, strconv.Itoa(n))
	}
	return b.pass(child)
}

func (b *bench) pass(child *exec.Cmd) error {
	child.Stderr = os.Stderr
	text, err := child.Output()
	if err != nil {
		return fmt.Errorf("child %s: %w", child.Path, err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var l line
		if err := d.Decode(&l); err != nil {
			return fmt.Errorf("child %s said %q: %w", child.Path, text, err)
		}
		if err := b.out.Encode(l); err != nil {
			return err
		}
		if l.Max > memoryLimit>>20 {
			fmt.Fprintf(os.Stderr, "memory: %s, %s: %.0f MB are over the limit of %d MB: state, a set of gradients, 15 %%\n", l.Impl, l.Variant, l.Max, int64(memoryLimit)>>20)
		}
	}
	return nil
}

func memoryTrain(ctx context.Context, args []string, stdout io.Writer) (err error) {
	if len(args) != 1 {
		return fmt.Errorf("%s takes a plugin, got %q", memoryChild, args)
	}
	set, err := data.New(data.X(make([]float32, memoryBatch*memoryWidth), memoryBatch, memoryWidth), data.Y(make([]float32, memoryBatch*memoryWidth), memoryBatch, memoryWidth))
	if err != nil {
		return err
	}
	r, err := (&bench{plugin: args[0]}).open(ctx)
	if err != nil {
		return err
	}
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(adam()))
	if err != nil {
		return err
	}
	step := managed.TrainStep(func(b *managed.Builder) {
		x := b.Field("x")
		for i := range memoryLayers {
			x = activation.Relu(layers.Dense(b.Scope().In("dense_%d", i), x, false, memoryWidth))
		}
		b.Loss("loss", losses.SquaredError(b.Field("y"), x))
	})
	defer func() { err = errors.Join(err, step.Close(), state.Close(), r.Close()) }()
	var peaks []float64
	for batch, err := range set.Batches(memoryBatch).From(0) {
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
		if peaks = append(peaks, float64(rssMB())); len(peaks) == memorySteps {
			break
		}
	}
	b := &bench{out: json.NewEncoder(stdout)}
	switch device, err := r.DeviceMemory(0); {
	case errors.Is(err, xla.ErrUnimplemented): // on the CPU the process's
	case err != nil:
		return err
	default:
		of := line{Workload: "memory", Variant: "device, peak", Unit: "MB", Batch: memoryBatch, Steps: memorySteps}
		if err := b.emit(of, []float64{float64(device.PeakInUse >> 20)}); err != nil {
			return err
		}
	}
	return errors.Join(
		b.emit(line{Workload: "memory", Variant: "peak, first step", Unit: "MB", Batch: memoryBatch, Steps: 1}, peaks[:1]),
		b.emit(line{Workload: "memory", Variant: "peak", Unit: "MB", Batch: memoryBatch, Steps: memorySteps}, peaks[memorySteps-1:]))
}
