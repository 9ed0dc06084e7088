package checkpoint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// A run that is to go on with another batch size or other data is refused, and the difference is named.
func TestF11_otherSettingsAreRefused(t *testing.T) {
	type settings struct {
		Data  string
		Batch int
		Rates []float64
	}
	was := settings{"train <1>.csv", 32, []float64{0.1, 0.5}}
	for _, row := range []struct {
		name       string
		saved, now any
		want       string // "" is no error
	}{
		{"nothing", was, was, ""},
		{"the batch size", was, settings{was.Data, 16, was.Rates}, "Batch was 32 and is 16"},
		{"the data", was, settings{"test.csv", 32, was.Rates}, `Data was "train \u003c1\u003e.csv" and is "test.csv"`},
		{"all", was, settings{"test.csv", 8, nil}, `Batch was 32 and is 8, Data was "train \u003c1\u003e.csv" and is "test.csv", Rates was [0.1,0.5] and is null`},
		{"a field more", map[string]any{"Batch": 32}, map[string]any{"Batch": 32, "Seed": 1}, "Seed was not there and is 1"},
		{"a field less", map[string]any{"Batch": 32, "Seed": 1}, map[string]any{"Batch": 32}, "Seed was 1 and is not there"},
		{"no object", 1, 2, "was 1 and is 2"},
		{"nothing at all", (*int)(nil), 2, "was null and is 2"},
		{"another kind", 1, map[string]any{"Batch": 32}, "was 1 and is not there, Batch was not there and is 32"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
			saveOnce(t, f, &valued{metrics: map[string]float64{"was": 1}}, loop.Elapsed{}, nil, checkpoint.Options{Same: row.saved})
			state := &valued{}
			_, err := looked(f, state, checkpoint.Options{Same: row.now})
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, checkpoint.ErrChanged)
			require.EqualError(t, err, `loop: resume: checkpoint: resume from step 1 in folder: the run was saved with other settings: `+row.want+"; give it the same ones, or begin in another folder")
			require.Empty(t, state.metrics, "nothing is restored")
		})
	}
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	_, err := looked(f, &valued{}, checkpoint.Options{Same: was})
	require.NoError(t, err, "a beginning has no settings")
	saveOnce(t, f, &valued{}, loop.Elapsed{}, nil)
	var told []checkpoint.Difference
	_, err = looked(f, &valued{}, checkpoint.Options{Same: 3, Changed: func(d checkpoint.Difference) error { told = append(told, d); return nil }})
	require.NoError(t, err)
	require.Equal(t, []checkpoint.Difference{{What: "Same", Saved: "not there", Now: "3"}}, told, "a run that was saved without settings continues")
	_, err = looked(f, &valued{}, checkpoint.Options{Same: func() {}})
	require.ErrorContains(t, err, "unsupported type")
	t.Log("F11: another batch size, other data, other rates: each refused by name, with both values")
}
