package spmd

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla/install"
	"github.com/lazo-ml/lazo/xla/pjrt"
)

var loadCPU = sync.OnceValues(func() (*pjrt.Plugin, error) {
	plugin, err := install.Find("cpu", "")
	if err != nil {
		return nil, fmt.Errorf("these tests need the CPU plugin: make setup: %w", err)
	}
	for name, value := range pjrt.Environment(plugin.Path, os.Getenv) {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	return pjrt.Load(plugin.Path)
})

// openCPU makes a client with so many devices, closed with the test.
func openCPU(t testing.TB, devices int) *pjrt.Client {
	t.Helper()
	p, err := loadCPU()
	require.NoError(t, err)
	c, err := p.NewClient(map[string]any{"cpu_device_count": int64(devices)}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}
