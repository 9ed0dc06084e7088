package xla_test

import (
	"errors"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla"
)

// F41: a use after Close is an error that names it.
func TestF41_useAfterClose(t *testing.T) {
	r, err := xla.Open(t.Context(), xla.CPU)
	require.NoError(t, err)
	x, err := r.BufferFromFlatData(0, []float32{1, 2}, pair)
	require.NoError(t, err)
	inputs := []compute.Buffer{x}
	p, err := r.Compile("plus one", plusOne)
	require.NoError(t, err)
	q, err := r.Compile("plus one", plusOne)
	require.NoError(t, err)
	require.NoError(t, errors.Join(p.Close(), p.Close()))
	run := func(p *xla.Program) func() error { return func() error { _, err := p.Run(inputs, nil); return err } }
	require.EqualError(t, run(p)(), "xla: run plus one: the program is closed")
	require.ErrorIs(t, run(p)(), xla.ErrClosed)
	require.NoError(t, errors.Join(r.Close(), r.Close()))
	rows := map[string]func() error{
		"xla: compile plus one: the runtime is closed": func() error { _, err := r.Compile("plus one", plusOne); return err },
		"xla: run plus one: the runtime is closed":     run(q),
		"xla: the runtime is closed":                   func() error { _, err := r.BufferFromFlatData(0, []float32{1, 2}, pair); return err },
	}
	for want, f := range rows {
		err := f()
		require.ErrorIs(t, err, xla.ErrClosed)
		require.EqualError(t, err, want)
	}
	require.ErrorIs(t, x.Finalize(), xla.ErrClosed)
	require.ErrorIs(t, q.Close(), xla.ErrClosed, "it was freed with the runtime")
	t.Logf("F41: %d calls after Close: ErrClosed each", len(rows)+3)
}
