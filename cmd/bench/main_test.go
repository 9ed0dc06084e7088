package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// The lines must have the fields that the peers' have, so that one reader takes both.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-workload", "tiny,linear,digits,matmul,inplace,predict", "-steps", "20", "-repeats", "1"}
	require.NoError(t, run(t.Context(), args, nil, &out, io.Discard))
	var got []string
	for d := json.NewDecoder(&out); d.More(); {
		var l line
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&l))
		require.Equal(t, "lazo", l.Impl)
		require.Equal(t, l.N, len(l.Values))
		require.LessOrEqual(t, l.Min, l.Median)
		require.LessOrEqual(t, l.Median, l.Max)
		require.Positive(t, l.Min)
		require.NotEmpty(t, l.Versions["gomlx"])
		got = append(got, l.Workload+"/"+l.Variant+" "+l.Unit)
		if l.Workload == "digits" && l.Variant == "metric" {
			require.Greater(t, l.Mean, 0.91)
		}
	}
	require.Equal(t, []string{
		"tiny/metric us/step", "tiny/log us/step", "tiny/bar us/step", "tiny/one by one us/step", "linear/metric steps/s", "linear/bar steps/s", "linear/on device steps/s",
		"digits/metric test accuracy", "digits/later seed s", "matmul/1024^3 GFLOP/s", "matmul/4096^3 GFLOP/s", "copy/256MiB x+1 (fresh output) GB/s (read+write)", "copy/256MiB x+1 (donated) GB/s (read+write)",
		"inplace/10 us/run", "inplace/150 us/run", "inplace/600 us/run",
		"predict/1 requests/s", "predict/8 requests/s", "predict/64 requests/s",
	}, got)
}

func TestMistakes(t *testing.T) {
	for _, args := range [][]string{{"-workload", "tinny"}, {"-steps", "-1"}, {"-repeats", "0"}, {"-batch", "x"}, {"tiny"}, {"-history", "x"}, {"-check", "x", "-history", "x"}} {
		err := run(t.Context(), args, nil, io.Discard, io.Discard)
		require.True(t, errors.As(err, new(usageError)), "%v: %v", args, err)
	}
}
