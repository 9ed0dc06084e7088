package xla

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/spmd"
)

type executable struct {
	of     *pjrtClient
	module *hlo.Module
	text   string
	pjrt   *pjrt.Executable
	shared *sharedProgram
	took   time.Duration
	// portable programs run on any one device.
	portable  bool
	options   pjrt.CompileOptions
	constants constants
}

var _ compute.Executable = (*executable)(nil)

func (c *pjrtClient) Builder(name string) compute.Builder { return c.builder(name, c.compile) }

func (c *pjrtClient) compile(m *hlo.Module) (compute.Executable, error) {
	e, err := c.compileFor(m, len(c.devices) > 1 && m.Devices.Count() == 1 && m.Devices.Assignment == nil, false)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (c *pjrtClient) compileFor(m *hlo.Module, portable, share bool) (*executable, error) {
	options := baseOptions(c.plugin.Kind)
	options.Portable = portable
	if !portable {
		if err := forDevices(&options, m, c.runtime.NumDevices(), func(n compute.DeviceNum) (int, error) {
			if c.exchanges(m) {
				return c.across.id(n)
			}
			d, err := c.device(n)
			if err != nil {
				return 0, err
			}
			return d.ID(), nil
		}); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	e := &executable{of: c, module: m, text: m.Text(), portable: portable, options: options}
	from := cacheShared
	compile := func() (p *pjrt.Executable, err error) {
		if c.exchanges(m) {
			p, from, err = c.across.compile(c.client, c.cache, m.Name, e.text, options)
		} else {
			p, from, err = c.compileText(e.text, options)
		}
		if err != nil {
			return nil, located(m, err)
		}
		return p, nil
	}
	var err error
	if share {
		if e.shared, err = c.shared.program(e.text, options, compile); err == nil {
			e.pjrt = e.shared.Executable
		}
	} else {
		e.pjrt, err = compile()
	}
	if err != nil {
		return nil, err
	}
	e.took = time.Since(start)
	if err := e.placeConstants(); err != nil {
		return nil, errors.Join(err, e.close())
	}
	if c.log.Enabled(context.Background(), slog.LevelInfo) {
		bytes, _ := needs(e.pjrt)
		logCompiled(c.log, m.Name, from, e.took, bytes)
	}
	return e, nil
}

func (c *pjrtClient) compileText(text string, options pjrt.CompileOptions) (*pjrt.Executable, fromCache, error) {
	as, _ := c.joins(options)
	return c.cache.compile(c.client, text, as, func() (*pjrt.Executable, error) { return c.compileNow(text, options) })
}

// joins returns the options of a program for devices of this process, whose exchanges [spmd.Join] joins.
func (c *pjrtClient) joins(options pjrt.CompileOptions) (as pjrt.CompileOptions, ok bool) {
	if c.plugin.Kind != CPU || !options.SPMD || options.Partitions < 2 {
		return options, false
	}
	as = options
	as.Replicas, as.Partitions, as.SPMD, as.Shardy = options.Partitions, 1, false, false
	return as, true
}

func (c *pjrtClient) compileNow(text string, options pjrt.CompileOptions) (*pjrt.Executable, error) {
	as, ok := c.joins(options)
	if !ok {
		return c.client.Compile([]byte(text), options)
	}
	module, err := c.client.Partition([]byte(text), options)
	if err != nil {
		return nil, err
	}
	module, err = spmd.Join(module, options.Partitions)
	switch {
	case errors.Is(err, spmd.ErrUnsupported): // an exchange that the strategies do not use
		return c.client.Compile([]byte(text), options)
	case err != nil:
		return nil, err
	}
	return c.client.CompileHLO(module, as)
}

func (c *pjrtClient) exchanges(m *hlo.Module) bool { return c.across != nil && m.Devices.Count() > 1 }

func baseOptions(kind string) pjrt.CompileOptions {
	options := pjrt.CompileOptions{Debug: map[string]any{}}
	if kind == CPU {
		// XNNPACK caches packed weights by address: after an update in place, a test step would silently use old ones.
		// Nor is it faster (docs/maintain/performance.md).
		options.Debug["xla_cpu_use_xnnpack"] = false
		// By default, max and min over an axis ignore NaN.
		options.Debug["xla_cpu_enable_fast_min_max"] = false
		// YNNPACK may compute single products (4) and convolutions (5). Fused with sums, it computes wrong numbers or
		// crashes in some versions (docs/plugins.md).
		options.Debug["xla_cpu_experimental_ynn_fusion_type"] = "4,5"
		// Else a step copies each weight that its backward pass reads, because the new one overwrites it.
		options.Debug["xla_cpu_copy_insertion_use_region_analysis"] = true
	}
	return options
}

func forDevices(options *pjrt.CompileOptions, m *hlo.Module, devices int, id func(compute.DeviceNum) (int, error)) error {
	n := m.Devices.Count()
	if n > devices {
		return fmt.Errorf("xla: compile %s: it is for %d devices, there are %d", m.Name, n, devices)
	}
	options.Replicas, options.Partitions = max(m.Devices.Replicas, 1), max(m.Devices.Partitions, 1)
	options.SPMD, options.Shardy = m.Devices.Shardy(), m.Devices.Shardy()
	for i := range n {
		at := compute.DeviceNum(i)
		if m.Devices.Assignment != nil {
			at = m.Devices.Assignment[i]
		}
		device, err := id(at)
		if err != nil {
			return err
		}
		options.Devices = append(options.Devices, device)
	}
	return nil
}

// placeConstants frees the host's copy, except for portable programs.
func (e *executable) placeConstants() error {
	if _, n := e.module.Constants(); n == 0 || e.portable {
		return nil
	}
	for _, d := range e.pjrt.Devices() {
		if _, err := e.constantsOn(d); err != nil {
			return err
		}
	}
	e.module = withoutConstants(e.module)
	return nil
}

func (e *executable) constantsOn(d *pjrt.Device) ([]*pjrt.Buffer, error) {
	first, n := e.module.Constants()
	if n == 0 {
		return nil, nil
	}
	e.constants.mu.Lock()
	defer e.constants.mu.Unlock()
	if placed, ok := e.constants.on[d]; ok {
		return placed, nil
	}
	var placed []*pjrt.Buffer
	for _, p := range e.module.Parameters[first : first+n] {
		b, err := d.Put(pjrt.Array{Shape: fromGoMLX(p.Shape), Data: p.Value})
		if err != nil {
			return nil, errors.Join(err, closeAll(placed))
		}
		placed = append(placed, b)
	}
	if e.constants.on == nil {
		e.constants.on = map[*pjrt.Device][]*pjrt.Buffer{}
	}
	e.constants.on[d] = placed
	return placed, nil
}

func (e *executable) runsOn(on *pjrt.Device) []*pjrt.Device {
	if on != nil {
		return []*pjrt.Device{on}
	}
	return e.pjrt.Devices()
}

func (e *executable) explained(err error) error {
	if errors.Is(err, ErrClosed) && e.of.closed.Load() {
		return errClosed
	}
	err = WrapError(err)
	if typed, ok := errors.AsType[*Error](err); ok && errors.Is(err, ErrOutOfMemory) {
		typed.Memory = memoryText(e.pjrt, e.module)
	}
	return err
}

func (e *executable) StableHLO() string { return e.text }

func (e *executable) Finalize() { _ = e.close() }

func (e *executable) close() error {
	err := e.constants.close()
	if e.shared != nil {
		return errors.Join(err, e.of.shared.giveBack(e.shared))
	}
	return errors.Join(err, e.pjrt.Close())
}

func (e *executable) Inputs() (names []string, inputs []shapes.Shape) {
	for _, p := range callersParameters(e.module) {
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

// Execute waits. Inputs are ordered device after device. It frees donated ones, and copies others that the program
// overwrites.
func (e *executable) Execute(inputs []compute.Buffer, donate []bool, on compute.DeviceNum) ([]compute.Buffer, error) {
	devices := e.module.Devices.Count()
	if e.of.exchanges(e.module) {
		return nil, fmt.Errorf("xla: run %s: %w: GoMLX's own runs do not go over several processes: use Runtime.CompileOver", e.module.Name, ErrUnimplemented)
	}
	n := len(callersParameters(e.module))
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
		args[i/n] = append(args[i/n], b.Buffer)
	}
	for i, d := range e.runsOn(options.Device) {
		constants, err := e.constantsOn(d)
		if err != nil {
			return nil, fmt.Errorf("xla: run %s: %w", e.module.Name, err)
		}
		args[i] = append(args[i], constants...)
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
	for _, done := range run.Done {
		if closeErr := done.Close(); err == nil {
			err = closeErr
		}
	}
	for i, donated := range donate {
		if donated {
			if closeErr := args[i/n][i%n].Close(); err == nil {
				err = closeErr
			}
		}
	}
	return e.of.wrapAll(run.Outputs), err
}

func memoryText(p *pjrt.Executable, module *hlo.Module) string {
	var lines []string
	if _, text := needs(p); text != "" {
		lines = append(lines, "  the program needs "+text)
	}
	const shown = 3
	most := int64(0)
	for i, op := range module.Largest(shown) {
		outputs, bytes := make([]string, len(op.Outputs)), int64(0)
		for i, s := range op.Outputs {
			outputs[i], bytes = s.String(), bytes+int64(s.ByteSize())
		}
		most = max(most, bytes)
		if bytes < most/100 {
			break
		}
		lead := "  the largest values, before XLA joins operations: "
		if i > 0 {
			lead = "    "
		}
		line := fmt.Sprintf("%s%s: %s of %s", lead, byteText(bytes), strings.Join(outputs, ", "), op.Kind)
		if op.Where != "" {
			line += " at " + op.Where
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// The CPU plugin's peak omits temporary values.
func needs(p *pjrt.Executable) (bytes int64, text string) {
	m, err := p.Memory()
	if err != nil {
		return 0, ""
	}
	bytes = m.Arguments + m.Outputs - m.Aliased + m.Temporary
	return bytes, fmt.Sprintf("%s: %s of arguments, %s of outputs (%s of them in place), %s of temporary values",
		byteText(bytes), byteText(m.Arguments), byteText(m.Outputs), byteText(m.Aliased), byteText(m.Temporary))
}

func byteText(n int64) string {
	const unit = 1 << 10
	if n < 10*unit {
		return fmt.Sprintf("%d bytes", n)
	}
	size, name := float64(n), ""
	for _, name = range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if size /= unit; size < unit {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", size, name)
}
