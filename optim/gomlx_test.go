package optim_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/optim"
)

// A GoMLX optimizer that lazo cannot use is an error, and any is one where a chain is needed.
func TestGoMLX_refuses(t *testing.T) {
	require.Nil(t, optim.GoMLX(nil))
	state := newState(t, plugintest.CPU(t), optim.GoMLX(byLoss{}))
	_, _, err := trainStep(t, bowl).StepBlock(t.Context(), state, slopes(t, 1, 1))
	require.ErrorContains(t, err, "optimizer optim_test.byLoss cannot be given gradients (it needs UpdateGraphWithGradients, as all of GoMLX's have)")

	o := optim.GoMLX(optimizer.Adam().Done())
	_, err = o.Scaled()
	require.EqualError(t, err, "optim: optimizer *optimizer.adam cannot scale losses, expected a chain of package optim: use optim.New")
	require.True(t, math.IsNaN(o.RateAt(0)))
	factors, err := o.FactorsAt(0)
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"": 1}, factors)
}
