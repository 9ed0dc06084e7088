package flaxlike_test

import (
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// A rate that a float32 holds is said as it was given, and LearningRate knows it before the first step.
func TestS36_learningRate(t *testing.T) {
	set, path := line(t, 8), filepath.Join(t.TempDir(), "model")
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer("adam"))
	rate, err := m.LearningRate()
	require.NoError(t, err)
	require.Equal(t, 0.001, rate)
	must.M1(m.Fit(t.Context(), set, quiet(flaxlike.Fit{})))
	must.M(m.SetLearningRate(0.05))
	must.M(m.Save(path))
	require.Contains(t, must.M1(flaxlike.Describe(path)).String(), "adam, rate 0.05\n")
	again := must.M1(opened(t, path))
	rate, err = again.LearningRate()
	require.NoError(t, err)
	require.Equal(t, 0.05, rate)
	must.M1(again.Fit(t.Context(), set, quiet(flaxlike.Fit{})))
	rate, err = again.LearningRate()
	require.NoError(t, err)
	require.Equal(t, float64(float32(0.05)), rate, "as the device holds it")
}

// The rate of an optimizer by value is known before the first step as that of one by name is, whatever a schedule makes
// of it; one of GoMLX's does not say it.
func TestModel_rateBeforeTheFirstStep(t *testing.T) {
	of := func(options ...flaxlike.Option) *flaxlike.Model {
		return newModel(t, nn.Dense{Units: 1}, append(options, flaxlike.WithLoss("mse"))...)
	}
	for name, m := range map[string]*flaxlike.Model{
		"a name":     of(flaxlike.WithOptimizer("sgd"), flaxlike.WithLearningRate(0.05)),
		"a rule":     of(flaxlike.WithOptimizer(optim.New(0.05, optim.Momentum{Decay: 0.9}))),
		"a schedule": of(flaxlike.WithOptimizer(optim.New(0.05, optim.Adam{}, optim.Scale(0)))),
		"a scaled":   of(flaxlike.WithOptimizer(optim.New(0.05)), flaxlike.WithPolicy(optim.MixedFloat16())),
	} {
		rate, err := m.LearningRate()
		require.NoError(t, err, name)
		require.Equal(t, 0.05, rate, name)
	}
	m := of(flaxlike.WithOptimizer(optim.New(0.05)))
	require.NoError(t, m.SetOptimizer(t.Context(), optim.New(0.5)))
	require.Equal(t, 0.5, must.M1(m.LearningRate()), "that of SetOptimizer")
	require.NoError(t, m.SetLearningRate(0.25))
	require.Equal(t, 0.25, must.M1(m.LearningRate()), "that was set")
	_, err := of(flaxlike.WithOptimizer(optim.GoMLX(optimizer.Adam().Done()))).LearningRate()
	require.ErrorIs(t, err, managed.ErrNoLearningRate)
}
