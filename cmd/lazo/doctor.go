package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/probe"
	"github.com/lazo-ml/lazo/xla"
)

type doctorCommand struct {
	Plugin string `default:"cpu" help:"Plugin to look at: cpu, cuda, tpu, go, cuda_compile, which compiles alone, or the path of a library; or mpi or mpich, by which lazo run starts jobs."`
	Prefix string `placeholder:"DIR" help:"Folder that plugins are installed in."`
}

var errProblem = errors.New("a problem was found")

func (c doctorCommand) Run(s session) error {
	printVersions(s.stdout)
	if text := limits(); text != "" {
		line(s.stdout, "limits", "%s", text)
	}
	examine := c.examine
	if isMPI(c.Plugin) {
		examine = c.examineMPI
	}
	err := examine(s.ctx, s.stdout)
	if err == nil {
		line(s.stdout, "result", "ok")
		return nil
	}
	if s.ctx.Err() != nil {
		return err
	}
	for i, text := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
		line(s.stdout, []string{"problem", ""}[min(i, 1)], "%s", text)
	}
	if advice := remedy(err, c.Plugin); advice != "" {
		line(s.stdout, "to do", "%s", advice)
	}
	return errProblem
}

func (c doctorCommand) examine(ctx context.Context, w io.Writer) error {
	if c.Plugin == cudaCompile {
		return c.compiles(ctx, w)
	}
	found, err := xla.Find(c.Plugin, xla.Root(c.Prefix))
	if c.Plugin == xla.CUDA && errors.Is(err, xla.ErrPluginNotFound) {
		if _, compiler := install.Find(cudaCompile, c.Prefix); compiler == nil {
			return errors.Join(fmt.Errorf("%s is installed, which compiles for GPUs (lazo plan) and runs nothing: see it by --plugin %s; to run on one, go run github.com/lazo-ml/lazo/cmd/lazo install %s",
				cudaCompile, cudaCompile, xla.CUDA), err)
		}
	}
	if err != nil {
		return err
	}
	if found.Source == "lazo install" {
		err = check(ctx, w, found.Name, c.Prefix)
	} else {
		line(w, "plugin", "%v", found)
	}
	if err != nil {
		return err
	}
	open := c.Plugin
	switch {
	case found.Kind == xla.Go:
	case !pjrt.Cgo:
		open = xla.Go
		line(w, "probe", "left out: this lazo was built without cgo, which plugins need; programs built so run on GoMLX's Go backend:")
	default:
		// first in a child: a broken plugin must not end the doctor
		report, err := probe.Run(ctx, found.Path)
		if err != nil {
			return err
		}
		line(w, "probe", "ok, platform %s, PJRT API %v", report.Platform, report.Version)
	}
	runtime, err := xla.Open(ctx, open, xla.Root(c.Prefix))
	if err != nil {
		return err
	}
	defer runtime.Close()
	line(w, "devices", "%d", runtime.NumDevices())
	for i, device := range runtime.Devices() {
		line(w, "", "%d: %s", i, device)
	}
	line(w, "memory", "%s; %s", memory(), deviceMemory(runtime))
	flops, err := matmul(ctx, runtime)
	if err != nil {
		return err
	}
	line(w, "matmul", "%d x %d float32: %.1f GFLOP/s on the first device, best of %d", side, side, flops/1e9, repeats)
	return nil
}

const cudaCompile = "cuda_compile"

func (c doctorCommand) compiles(ctx context.Context, w io.Writer) (err error) {
	if err := check(ctx, w, cudaCompile, c.Prefix); err != nil {
		return err
	}
	found, err := install.Find(cudaCompile, c.Prefix)
	if err != nil {
		return err
	}
	const topology = "h100:1x1x8"
	described, err := xla.OpenTopology(ctx, found.Path, topology)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, described.Close()) }()
	p, err := described.Compile("increment", func(g *graph.Graph) xla.Built {
		return xla.Built{Outputs: []*graph.Node{graph.OnePlus(graph.Parameter(g, "x", shapes.Make(dtypes.Float32, side)))}}
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.Prepare(ctx); err != nil {
		return err
	}
	line(w, "compiles", "for %s (%d devices), in %v; it runs nothing", topology, described.NumDevices(), p.CompileTime().Round(time.Millisecond))
	return nil
}

func remedy(err error, plugin string) string {
	again := "go run github.com/lazo-ml/lazo/cmd/lazo install " + plugin + " --force"
	if strings.ContainsAny(plugin, `/\.`) {
		again = "use another library, or the one that lazo installs"
	}
	switch {
	case errors.Is(err, install.ErrDamaged), errors.Is(err, xla.ErrPluginDamaged), errors.Is(err, pjrt.ErrABI):
		return again
	case errors.Is(err, probe.ErrFlags):
		return "unset XLA_FLAGS, or set it to flags of this plugin's version"
	case errors.Is(err, xla.ErrNoDevice) && strings.Contains(filepath.Base(plugin), xla.TPU):
		return "check that this user can access the TPU (/dev/accel*, /dev/vfio); to compile for a TPU without one, see docs/maintain/targets.md"
	case errors.Is(err, xla.ErrNoDevice):
		return "check that the driver is installed and the device is visible to this user (nvidia-smi)"
	case errors.Is(err, xla.ErrOutOfMemory):
		return "another process may hold the device's memory; on the CPU see the line limits, if there is one: the plugin needs 3 GiB of addresses"
	case errors.Is(err, probe.ErrTimeout):
		return "check that the device exists, and try again on an idle machine"
	}
	return ""
}

const (
	side    = 1024
	repeats = 5
)

func matmul(ctx context.Context, on *xla.Runtime) (float64, error) {
	shape := shapes.Make(dtypes.Float32, side, side)
	program, err := on.Compile("matmul", func(g *graph.Graph) xla.Built {
		return xla.Built{Outputs: []*graph.Node{graph.DotProduct(graph.Parameter(g, "a", shape), graph.Parameter(g, "b", shape))}}
	})
	if err != nil {
		return 0, err
	}
	defer program.Close()
	ones := make([]float32, side*side)
	for i := range ones {
		ones[i] = 1
	}
	matrix, err := on.BufferFromFlatData(0, ones, shape)
	if err != nil {
		return 0, xla.WrapError(err)
	}
	defer matrix.Finalize() // the runtime closes next
	best := time.Duration(1<<63 - 1)
	for range repeats + 1 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := time.Now()
		outputs, err := program.Run([]compute.Buffer{matrix, matrix}, nil)
		if err != nil {
			return 0, err
		}
		best = min(best, time.Since(start))
		err = outputs[0].ToFlatData(ones)
		if err = errors.Join(err, outputs[0].Finalize()); err != nil {
			return 0, xla.WrapError(err)
		}
		if ones[0] != side || ones[len(ones)-1] != side {
			return 0, fmt.Errorf("the first device computes wrongly: a sum of %d ones gives %g", side, ones[0])
		}
	}
	return 2 * side * side * side / best.Seconds(), nil
}

func memory() string {
	total, free := hostMemory()
	if total == 0 {
		return fmt.Sprintf("host: not known on %s", runtime.GOOS)
	}
	return fmt.Sprintf("host: %.1f GiB, %.1f GiB free", gib(total), gib(free))
}

func deviceMemory(on *xla.Runtime) string {
	stats, err := on.DeviceMemory(0)
	if err != nil { // the CPU plugin does not count the host's memory
		return "devices: not reported by the plugin"
	}
	return fmt.Sprintf("first device: %.1f GiB, %.1f GiB in use", gib(uint64(stats.Limit)), gib(uint64(stats.InUse)))
}

func gib(bytes uint64) float64 { return float64(bytes) / (1 << 30) }
