package xla

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/lazo-ml/lazo/xla/hlo"
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// executable is a compiled module as GoMLX's graphs run it. [Program] has it run in ways that GoMLX does not know.
type executable struct {
	of     *client
	module *hlo.Module
	pjrt   *pjrt.Executable
	took   time.Duration
	// portable programs run on any one device.
	portable bool
}

var _ backends.Executable = (*executable)(nil)

func (c *client) compile(m *hlo.Module) (backends.Executable, error) {
	// A program of one device that nobody assigned may be wanted on any, if there are several.
	e, err := c.compileFor(m, len(c.devices) > 1 && m.Devices.Count() == 1 && m.Devices.Assignment == nil)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// packedAtMost is up to how many bytes of parameters XLA may leave products on the CPU to XNNPACK. That is a little faster where
// a step is small, and keeps a packed copy of each matrix of weights: 0.38 GB for 100 million parameters, whose steps were
// no slower without.
const packedAtMost = 64 << 20

func (c *client) compileFor(m *hlo.Module, portable bool) (*executable, error) {
	options := pjrt.CompileOptions{Portable: portable}
	if c.plugin.Kind == CPU && m.ParameterBytes() > packedAtMost {
		options.Debug = map[string]any{"xla_cpu_use_xnnpack": false}
	}
	if n := m.Devices.Count(); !portable {
		if n > len(c.devices) {
			return nil, fmt.Errorf("xla: compile %s: it is for %d devices, there are %d", m.Name, n, len(c.devices))
		}
		options.Replicas, options.Partitions = max(m.Devices.Replicas, 1), max(m.Devices.Partitions, 1)
		options.SPMD, options.Shardy = m.Devices.Shardy(), m.Devices.Shardy()
		for i := range n {
			at := backends.DeviceNum(i)
			if m.Devices.Assignment != nil {
				at = m.Devices.Assignment[i]
			}
			d, err := c.device(at)
			if err != nil {
				return nil, err
			}
			options.Devices = append(options.Devices, d.ID())
		}
	}
	start := time.Now()
	compiled, had, err := c.cache.compile(c.client, m.Text(), options)
	if err != nil {
		return nil, located(m, err)
	}
	e := &executable{of: c, module: m, pjrt: compiled, took: time.Since(start), portable: portable}
	if c.log.Enabled(context.Background(), slog.LevelInfo) {
		bytes, _ := e.needs()
		logCompiled(c.log, m.Name, had, e.took, bytes)
	}
	return e, nil
}

// StableHLO is the program as it was given to the plugin.
func (e *executable) StableHLO() string { return e.module.Text() }

// Finalize frees the program.
func (e *executable) Finalize() { _ = e.close() }

func (e *executable) close() error { return e.pjrt.Close() }

func (e *executable) Inputs() (names []string, inputs []shapes.Shape) {
	for _, p := range e.module.Parameters {
		names, inputs = append(names, p.Name), append(inputs, p.Shape)
	}
	return names, inputs
}

func (e *executable) Outputs() (outputs []shapes.Shape) {
	for _, o := range e.module.Outputs {
		outputs = append(outputs, o.Shape)
	}
	return outputs
}

// Execute runs the program and waits. Inputs and outputs are those of one device after the other. What the program writes
// over is copied first unless it is donated; what is donated is freed.
func (e *executable) Execute(inputs []backends.Buffer, donate []bool, on backends.DeviceNum) ([]backends.Buffer, error) {
	devices := e.module.Devices.Count()
	n := len(e.module.Parameters)
	if len(inputs) != n*devices || donate != nil && len(donate) != len(inputs) {
		return nil, fmt.Errorf("xla: run %s: expected %d inputs for each of %d devices, got %d, and %d marks of donation", e.module.Name, n, devices, len(inputs), len(donate))
	}
	options := pjrt.ExecuteOptions{}
	if e.portable {
		d, err := e.of.device(on)
		if err != nil {
			return nil, err
		}
		options.Device = d
	}
	args := make([][]*pjrt.Buffer, devices)
	for i, input := range inputs {
		b, err := bufferOf(input)
		if err != nil {
			return nil, fmt.Errorf("xla: run %s: input %d: %w", e.module.Name, i, err)
		}
		args[i/n] = append(args[i/n], b)
	}
	for _, parameter := range e.module.InPlace {
		if donate == nil || !donate[parameter] {
			options.Keep = append(options.Keep, parameter)
		}
	}
	run, err := e.pjrt.Execute(args, options)
	if err == nil {
		err = run.Await()
	}
	if err != nil {
		if run != nil {
			_ = run.Close()
		}
		return nil, e.explained(err)
	}
	var outputs []backends.Buffer
	for _, list := range run.Outputs {
		for _, b := range list {
			outputs = append(outputs, b)
		}
	}
	for _, done := range run.Done {
		if closeErr := done.Close(); err == nil {
			err = closeErr
		}
	}
	for i, given := range donate {
		if given {
			if closeErr := args[i/n][i%n].Close(); err == nil {
				err = closeErr
			}
		}
	}
	return outputs, err
}
