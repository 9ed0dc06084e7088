package records

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type logged struct{ err error }

func (l logged) Float() (float64, error) { return 2, l.err }

type loggedText struct{ logged }

func (loggedText) Any() (any, error) { return "text", nil }

func TestRow_add(t *testing.T) {
	var r Row
	r.Reset(Elapsed{Steps: 7})
	broken := errors.New("the device is gone")
	require.NoError(t, r.Add("train.loss", logged{}))
	require.NoError(t, r.Add("train.text", loggedText{logged{broken}}), "a text has no column")
	err := r.Add("train.rate", logged{broken})
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "step 7: train.rate: the device is gone")
	require.Equal(t, []string{"train.loss"}, r.Columns)
	require.Equal(t, []float64{2}, r.Numbers)
	r.Reset(Elapsed{})
	require.Empty(t, r.Columns)
	require.Empty(t, r.Numbers)
}

func TestRow_check(t *testing.T) {
	for want, at := range map[string]Elapsed{
		"":                    {Steps: Most, Samples: Most, Batch: UnknownBatch, Time: time.Hour},
		"elapsed.steps is -1": {Steps: -1},
		"elapsed.batch is -2": {Batch: -2},
		"elapsed.row is -1":   {Row: -1},
		"elapsed.samples is 4611686018427387905, expected 0 to 2^62": {Samples: Most + 1},
		"expected 0 to 2^62 nanoseconds":                             {Time: -1},
	} {
		r := Row{Elapsed: at}
		if err := r.Check(); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}
