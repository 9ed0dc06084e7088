package export_test

import (
	"bytes"
	"maps"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla/export"
)

// A step that lazo exported before GoMLX v0.28 runs, bit-identical to then. The test is here because this package's
// tests compile as users do.
//
//lazo:norace
func TestModel_ofBeforeGoMLX28(t *testing.T) {
	p, err := export.Load(filepath.Join("..", "..", "managed", "testdata", "gomlx-v0.26.0", "export"))
	require.NoError(t, err)
	m, err := p.Compile(plugintest.CPU(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	outputs, err := m.Run(p.Example.Inputs)
	require.NoError(t, err)
	after, err := m.State()
	require.NoError(t, err)
	maps.Copy(outputs, after)
	for name, want := range p.Example.Outputs {
		require.Equal(t, content(t, want), content(t, outputs[name]), name)
	}
	require.Greater(t, len(p.Example.Outputs), 20)
}

func content(t *testing.T, v *tensors.Tensor) (all []byte) {
	require.NoError(t, v.ConstBytes(func(part []byte) { all = bytes.Clone(part) }))
	return all
}
