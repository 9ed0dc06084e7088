package main_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

const savedModel = "../../flaxlike/testdata/saved-1.safetensors"

// A saved model is shown without a plugin; what is none says so.
func TestModelShow(t *testing.T) {
	r := run(t, "model", "show", savedModel)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, string(must.M1(os.ReadFile("../../flaxlike/testdata/saved-1.golden"))), r.stdout)
	r = run(t, "model", "show", "--json", savedModel)
	require.Zero(t, r.code, r.stderr)
	var d struct {
		Network []string
		Numbers int
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &d))
	require.Equal(t, "  0 Dense Units=4", d.Network[1])
	require.Equal(t, 31, d.Numbers)
	r = run(t, "model", "show", "../../flaxlike/testdata/attention_gomlx_v0.26.safetensors")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "the file has values of variables, but no model")
	require.Equal(t, 1, run(t, "model", "show", "absent").code)
}

// A model of another network takes what fits from an exported checkpoint, as the error of its resume advises.
func TestCkptExport_intoAnotherModel(t *testing.T) {
	dir, strategy := t.TempDir(), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t)))
	set := must.M1(data.New(data.X([]float32{1, 2, 3, 4}, 4, 1), data.Y([]float32{1, 2, 3, 4}, 4, 1)))
	made := func(layers ...nn.Layer) *flaxlike.Model {
		m := must.M1(flaxlike.New(t.Context(), nn.Sequential(layers), strategy, flaxlike.WithLoss("mse")))
		t.Cleanup(func() { _ = m.Close() })
		require.NoError(t, m.Init(t.Context(), must.M1(data.Peek(set.Batches(4).All()))))
		return m
	}
	m, other := made(nn.Dense{Units: 3}, nn.Dense{Units: 1}), made(nn.Dense{Units: 3}, nn.Dense{Units: 2}, nn.Dense{Units: 1})
	fit := flaxlike.Fit{Output: io.Discard, Callbacks: []loop.Option{checkpoint.Resume(filepath.Join(dir, "run"))}}
	must.M1(m.Fit(t.Context(), set, fit))
	_, err := other.Fit(t.Context(), set, fit)
	require.ErrorContains(t, err, "into a flaxlike.Model by LoadSome from a file of lazo ckpt export")
	r := run(t, "ckpt", "export", filepath.Join(dir, "run"), filepath.Join(dir, "parameters"))
	require.Zero(t, r.code, r.stderr)
	other = made(nn.Dense{Units: 3}, nn.Dense{Units: 2}, nn.Dense{Units: 1})
	copied := must.M1(other.LoadSome(t.Context(), filepath.Join(dir, "parameters"), nil))
	require.Equal(t, []string{"/model/0/bias", "/model/0/kernel"}, slices.Sorted(slices.Values(copied.Taken)))
}
