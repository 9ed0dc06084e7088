package pjrt

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/install"
)

var loadCPU = sync.OnceValues(func() (*Plugin, error) {
	plugin, err := install.Find("cpu", "")
	if err != nil {
		return nil, fmt.Errorf("these tests need the CPU plugin: make setup: %w", err)
	}
	for name, value := range Environment(plugin.Path, os.Getenv) {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	return Load(plugin.Path)
})

// openCPU returns a client with a number of devices. The test closes it.
func openCPU(t testing.TB, devices int) *Client {
	t.Helper()
	p, err := loadCPU()
	require.NoError(t, err)
	before := Live()
	c, err := p.NewClient(map[string]any{"cpu_device_count": int64(devices)}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		err := c.Close()
		if !isClosed(err) {
			require.NoError(t, err)
		}
		left := Live()
		left.Collected = before.Collected // the collector may close what a test left to the client
		require.Equal(t, before, left, "what is left after the client was closed")
	})
	return c
}

func compile(t testing.TB, c *Client, program string, o CompileOptions) *Executable {
	t.Helper()
	e, err := c.Compile([]byte(program), o)
	require.NoError(t, err)
	return e
}

func put[T Number](t testing.TB, d *Device, dtype DType, values []T, dims ...int) *Buffer {
	t.Helper()
	b, err := d.Put(Array{Shape: Shape{dtype, dims}, Data: Bytes(values)})
	require.NoError(t, err)
	return b
}

func fetch[T Number](t testing.TB, b *Buffer, n int) []T {
	t.Helper()
	values := make([]T, n)
	require.NoError(t, b.ToHost(Bytes(values)))
	return values
}

func TestPluginAndDevices(t *testing.T) {
	c := openCPU(t, 2)
	installed, err := install.Find("cpu", "")
	require.NoError(t, err)
	assert.Equal(t, installed.API, c.Plugin().Version().String(), "what the table says")
	attributes, err := c.Plugin().Attributes()
	require.NoError(t, err)
	assert.Len(t, attributes["stablehlo_current_version"], 3)
	assert.Contains(t, c.Plugin().Extensions(), Extension(4), "layouts")
	assert.Equal(t, "layouts", Extension(4).String())
	assert.Equal(t, "extension 99", Extension(99).String())
	assert.Equal(t, "cpu", c.Platform())
	assert.NotEmpty(t, c.PlatformVersion())
	assert.Zero(t, c.ProcessIndex())
	require.Len(t, c.Devices(), 2)
	assert.Equal(t, c.Devices(), c.AddressableDevices())
	for i, d := range c.Devices() {
		assert.Equal(t, i, d.ID())
		assert.Equal(t, "cpu", d.Kind())
		assert.Contains(t, strings.ToLower(d.String()), "cpu", "TFRT_CPU_0 of 0.81, cpu:0 of 0.106")
		assert.Zero(t, d.ProcessIndex())
		memories, err := d.Memories()
		require.NoError(t, err)
		assert.True(t, memories[0].Default)
		_, err = d.Attributes()
		require.NoError(t, err)
		_, err = d.MemoryStats()
		require.ErrorIs(t, err, ErrUnimplemented)
	}
}

// resident returns the memory of this process, or 0 without /proc.
func resident(t *testing.T) (bytes int) {
	t.Helper()
	debug.FreeOSMemory()
	var size, pages int
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		_, err = fmt.Sscan(string(text), &size, &pages)
		require.NoError(t, err)
	}
	return pages * os.Getpagesize()
}

func TestF18_fortyThousandRuns(t *testing.T) {
	const runs = 10_000
	c := openCPU(t, 1)
	call, state := stateCall(t, c, 3, 4)
	start := Live()
	made := 0
	run := func() {
		for range runs {
			_, err := call.Run()
			require.NoError(t, err)
		}
		made += runs
	}
	run()
	var grown []int // growth by part: a leak grows in all parts, a compilation only in one
	for len(grown) < 3 || slices.Min(grown) > 1<<20 && len(grown) < 8 {
		before := resident(t)
		run()
		grown = append(grown, resident(t)-before)
	}
	for range runs / 10 {
		x, err := call.Start()
		require.NoError(t, err)
		require.NoError(t, firstError(x.Await(), x.Close()))
		b := put(t, c.Devices()[0], Float32, []float32{1})
		require.Equal(t, []float32{1}, fetch[float32](t, b, 1))
		require.NoError(t, b.Close())
	}
	assert.Equal(t, start, Live(), "after the runs")
	runtime.KeepAlive(call)
	if !testing.Short() { // the race detector's memory hides the process's
		assert.Less(t, slices.Min(grown), 1<<20, "an event that is left in each run, which nobody counts, takes 360 bytes: %v", grown)
	}
	sum := float32(2 + made + runs/10)
	assert.Equal(t, []float32{sum, sum, sum, sum}, fetch[float32](t, state[2], 4))
	require.NoError(t, c.Close())
	end := Live()
	assert.Equal(t, Counts{Callbacks: end.Callbacks, Collected: start.Collected}, end)
	t.Logf("F18: %d runs: resident of each part after the first %+v bytes; live before %+v, after Close %+v", made+runs/10, grown, start, end)
}

func TestCollectedIfNobodyCloses(t *testing.T) {
	c := openCPU(t, 1)
	before := Live()
	func() {
		_, err := c.Devices()[0].Put(Array{Shape: Shape{Float32, nil}, Data: make([]byte, 4)})
		require.NoError(t, err)
	}()
	for i := 0; Live().Buffers != before.Buffers; i++ {
		require.Less(t, i, 1000, "the collector did not close the buffer")
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	assert.Equal(t, before.Collected+1, Live().Collected)
}

func TestAsync(t *testing.T) {
	const n, products = 512, 40
	var body strings.Builder
	for i := range products {
		fmt.Fprintf(&body, "%%%d = stablehlo.dot_general %%%d, %%0, contracting_dims = [1] x [0] : (tensor<%dx%dxf32>, tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n",
			i+1, i, n, n, n, n, n, n)
	}
	c := openCPU(t, 1)
	e := compile(t, c, fmt.Sprintf(`module @long {
func.func @main(%%x: tensor<%[1]dx%[1]dxf32>) -> tensor<%[1]dx%[1]dxf32> {
%%0 = stablehlo.add %%x, %%x : tensor<%[1]dx%[1]dxf32>
%[2]sreturn %%%[3]d : tensor<%[1]dx%[1]dxf32>
}}`, n, body.String(), products), CompileOptions{})
	one := make([]float32, n*n) // half the unit matrix: its double is idempotent
	for i := range n {
		one[i*n+i] = 0.5
	}
	b := put(t, c.Devices()[0], Float32, one, n, n)
	x, err := e.Execute([][]*Buffer{{b}}, ExecuteOptions{})
	require.NoError(t, err)
	ready, err := x.Done[0].Ready()
	require.NoError(t, err)
	assert.False(t, ready, "Execute waited for the program")
	called := make(chan error, 1)
	require.NoError(t, x.Done[0].OnReady(func(err error) { called <- err }))
	got := make([]float32, n*n)
	copied, err := x.Outputs[0][0].StartToHost(Bytes(got))
	require.NoError(t, err)
	ready, err = copied.Ready()
	require.NoError(t, err)
	assert.False(t, ready, "StartToHost waited for the program")
	require.NoError(t, x.Await())
	require.NoError(t, <-called)
	ready, err = x.Done[0].Ready()
	require.NoError(t, err)
	assert.True(t, ready)
	require.NoError(t, firstError(copied.Await(), copied.Close()))
	assert.Equal(t, []float32{1, 0, 0, 1}, []float32{got[0], got[1], got[n], got[n+1]})
	event, err := x.Outputs[0][0].Ready()
	require.NoError(t, err)
	require.NoError(t, firstError(event.Await(), event.Close(), x.Close()))
}
