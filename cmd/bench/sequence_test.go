package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

// The workloads of sequences, in a tiny form.
func TestSequences(t *testing.T) {
	small := gpt{layers: 1, width: 8, heads: 2, vocabulary: 16, places: 8}
	var out bytes.Buffer
	b := &bench{plugin: "cpu", repeats: 1, batch: 2, steps: 2, out: json.NewEncoder(&out), stdout: io.Discard, runtime: plugintest.CPU(t)}
	require.NoError(t, trainSequences("lstm", []sequence{lstmOf(4, 1)})(t.Context(), b))
	require.NoError(t, trainSequences("gpt", []sequence{gptOf(small, 1)})(t.Context(), b))
	b.steps = 4
	require.NoError(t, generates(generator{small, 3, 5})(t.Context(), b))
	var got []string
	for d := json.NewDecoder(&out); d.More(); {
		var l line
		require.NoError(t, d.Decode(&l))
		require.Positive(t, l.Min)
		got = append(got, l.Workload+"/"+l.Variant+" "+l.Unit)
	}
	require.Equal(t, []string{"lstm/4 ms/step", "lstm/4 first step s", "gpt/1 ms/step", "gpt/1 first step s",
		"generate/tokens tokens/s", "generate/first token ms", "generate/token 500 / token 10 ratio"}, got)
}
