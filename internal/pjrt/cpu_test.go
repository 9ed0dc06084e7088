package pjrt

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"

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
