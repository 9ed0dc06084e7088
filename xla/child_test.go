package xla_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/probe"
	"github.com/lazo-ml/lazo/xla"
)

// childName is the argv[0] under which this test binary does a task in a child process: a plugin reads its environment
// once per process, and a crash would end the tests.
const childName = "xla_test: child"

// task is a child's work after it has opened the plugin.
type task struct {
	Root, Cache string
	// Set is the value of XLA_FLAGS before a second Open; "" for no second Open.
	Set string
	// Program is the file of a program without inputs to compile and run; "" for a program that compares NaN with NaN.
	Program string
	// Bytes is the size of an array to put on the device, in parts.
	Bytes int
}

// outcome is a child's report.
type outcome struct {
	Error                  string
	Flags, Damaged, Memory bool // results of errors.Is
	Hits, Devices          int
	Flag                   float32 // 1: NaN is NaN
	Addresses              int     // peak of address space in bytes
}

func (o *outcome) note(err error) {
	o.Error = err.Error()
	o.Flags, o.Damaged, o.Memory = errors.Is(err, probe.ErrFlags), errors.Is(err, xla.ErrPluginDamaged), errors.Is(err, xla.ErrOutOfMemory)
}

func child() {
	var do task
	var o outcome
	err := json.Unmarshal([]byte(os.Args[1]), &do)
	if err == nil {
		err = do.run(&o)
	}
	if err != nil {
		o.note(err)
	}
	o.Addresses = addresses()
	if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// addresses returns this process's peak of address space in bytes, which ulimit -v limits; 0 if unknown.
func addresses() (bytes int) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, peak, _ := strings.Cut(string(status), "VmPeak:")
	if _, err := fmt.Sscanf(peak, "%d kB", &bytes); err != nil {
		return 0
	}
	return bytes << 10
}

func (do task) run(o *outcome) error {
	var opts []xla.Option
	if do.Root != "" {
		opts = append(opts, xla.Root(do.Root))
	}
	if do.Cache != "" {
		opts = append(opts, xla.CompileCache(do.Cache, 0))
	}
	r, err := xla.Open(context.Background(), xla.CPU, opts...)
	if err != nil {
		return err
	}
	o.Devices = r.NumDevices()
	if do.Set != "" {
		if err := os.Setenv("XLA_FLAGS", do.Set); err != nil {
			return err
		}
		_, err := xla.Open(context.Background(), xla.CPU, opts...)
		return err
	}
	if do.Program != "" {
		text, err := os.ReadFile(do.Program)
		if err != nil {
			return err
		}
		p, err := r.CompileStableHLO(context.Background(), "foreign", string(text), xla.Built{})
		if err != nil {
			return err
		}
		_, err = p.Run(nil, nil)
		return err
	}
	if do.Bytes > 0 {
		const part = 16 << 20
		for range do.Bytes / part {
			if _, err := r.BufferFromFlatData(0, make([]float32, part/4), shapes.Make(dtypes.Float32, part/4)); err != nil {
				return xla.WrapError(err)
			}
		}
	}
	one := shapes.Make(dtypes.Float32, 1)
	p, err := r.Compile("is NaN", func(g *graph.Graph) xla.Built {
		x := graph.Parameter(g, "x", one)
		return xla.Built{Outputs: []*graph.Node{graph.ConvertDType(graph.NotEqual(x, x), dtypes.Float32)}}
	})
	if err != nil {
		return err
	}
	x, err := r.BufferFromFlatData(0, []float32{float32(math.NaN())}, one)
	if err != nil {
		return xla.WrapError(err)
	}
	out, err := p.Run([]compute.Buffer{x}, nil)
	if err != nil {
		return err
	}
	if do.Cache != "" {
		o.Hits = xla.CacheHits(r)
	}
	flag := []float32{0}
	err = out[0].ToFlatData(flag)
	o.Flag = flag[0]
	return err
}

// result is the end of a child, with its outcome if there is one.
type result struct {
	outcome
	code   int // -1: a signal
	stderr string
}

// command returns a child that does a task with extra variables NAME=value. shell, if any, is run before exec.
func (do task) command(t *testing.T, shell string, env ...string) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(do)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "bash", "-c", shell+` exec -a "$0" "$1" "$2"`, childName, self, string(text))
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

func (do task) inChild(t *testing.T, shell string, env ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := do.command(t, shell, env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError), "%v", err)
	}
	r := result{code: cmd.ProcessState.ExitCode(), stderr: stderr.String()}
	if r.code == 0 {
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &r.outcome), "%q", stdout.String())
	}
	return r
}

// spoke returns an error if the child ended without finishing its work, an error or a message.
func (r result) spoke() error {
	if r.code != 0 && len(bytes.TrimSpace([]byte(r.stderr))) == 0 {
		return fmt.Errorf("it ended with status %d and said nothing", r.code)
	}
	return nil
}
