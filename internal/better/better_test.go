package better_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/better"
)

type mode int

func (m mode) String() string { return [...]string{"by name", "lowest", "highest", "wrong"}[m] }

func TestOf(t *testing.T) {
	for entry, want := range map[string]mode{
		"loss": better.Lowest, "losses.mse_test": better.Lowest, "auc_loss": better.Lowest, "poisson": better.Lowest,
		"val-Accuracy": better.Highest, "top5/acc_valid": better.Highest, "f1": better.Highest,
	} {
		got, err := better.Of(mode(0), entry)
		require.NoError(t, err)
		require.Equal(t, want, got, entry)
		got, err = better.Of(3-want, entry)
		require.NoError(t, err)
		require.Equal(t, 3-want, got, "a given mode goes before the name")
		require.NoError(t, better.Against(want, entry))
		require.NoError(t, better.Against(mode(0), entry))
		require.Error(t, better.Against(3-want, entry))
	}
	_, err := better.Of(mode(0), "score")
	require.EqualError(t, err, `it is not known whether a lower or a higher "score" is better`)
	_, err = better.Of(mode(3), "loss")
	require.EqualError(t, err, "mode must be Lowest or Highest, got wrong")
	require.EqualError(t, better.Against(mode(better.Lowest), "auc"), `the mode is lowest, but by its name "auc" is better when higher: use Highest, or no mode`)
}

func TestThan(t *testing.T) {
	for _, m := range []mode{better.Lowest, better.Highest} {
		worst, sign := better.Worst(m), 1.0
		if m == better.Highest {
			sign = -1
		}
		require.Equal(t, math.Inf(int(sign)), worst)
		require.True(t, better.Than(m, sign*1e300, worst, 0))
		require.True(t, better.Than(m, -sign, 0, 0.5))
		require.False(t, better.Than(m, -sign, 0, 1), "better by delta is not better by more than delta")
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			require.False(t, better.Than(m, v, 0, 0))
		}
	}
}
