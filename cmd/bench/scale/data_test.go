package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two plans give back what they were made of: what is divided, and what each device does for itself.
func TestReadModels(t *testing.T) {
	list, err := readModels("testdata/models.tsv", "h100")
	require.NoError(t, err)
	require.Len(t, list, 3)
	mlp := list[0]
	require.Equal(t, 1024, mlp.whole)
	require.Equal(t, 128, mlp.batch)
	require.InEpsilon(t, 425e6, mlp.exampleFLOPs*128+mlp.fixedFLOPs, 1e-9)
	require.InEpsilon(t, 61.3e6, mlp.exampleFLOPs*16+mlp.fixedFLOPs, 1e-9)
	// 4 FLOPs a parameter and example at least, 6 at most: of the first layer no gradient by its inputs is asked for.
	require.Greater(t, mlp.exampleFLOPs, 4*mlp.parameters)
	require.Less(t, mlp.exampleFLOPs, 6*mlp.parameters)
	require.InEpsilon(t, 1.07e9, list[2].parameters, 0.01)
	_, err = readModels("testdata/models.tsv", "h200")
	require.NoError(t, err)

	folder := t.TempDir()
	for text, says := range map[string]string{
		"mlp\th100\t8\t1024\t1\t1\t1\n":                    "columns",
		"mlp\th100\t8\t1024\t1\t1\t0\t1\n":                 "not a number above 0",
		"mlp\th100\t8\t1024\t1\t1\t1\t1\n":                 "was planned for 1 numbers",
		strings.Repeat("mlp\th100\t8\t8\t1\t1\tx\t1\n", 2): "not a number above 0",
	} {
		require.NoError(t, os.WriteFile(folder+"/models.tsv", []byte(text), 0o600))
		_, err := readModels(folder+"/models.tsv", "h100")
		require.ErrorContains(t, err, says)
	}
}

// An estimate is no better than what it rests on: more ranks never exchange in less, and no step takes less with one.
func TestEstimates(t *testing.T) {
	lines, err := readMeasured("testdata/measured.jsonl")
	require.NoError(t, err)
	p, err := readPrices("testdata", lines, 32)
	require.NoError(t, err)
	for _, f := range platforms {
		for _, m := range p.models[f.kind] {
			last := 0.0
			for _, n := range sizes {
				exchange := p.over(f.kind, f.network, m, n)
				require.Greater(t, exchange, last, "%s on %s, %d", m.name, f.name, n)
				last = exchange
				compute, memory := p.step(f.kind, m, float64(m.batch))
				least, most := bounds(f.kind, compute, memory, exchange)
				require.LessOrEqual(t, least, most)
				require.GreaterOrEqual(t, least, max(compute, memory, exchange))
			}
		}
	}
	// A plan's own estimate of the exchange within a host: in docs/maintain/plan.md each of 8 H100s sends 197.2 MiB.
	h100, transformer := p.machines["h100"], p.models["h100"][1]
	require.InEpsilon(t, 197.2*(1<<20), 2*7.0/8*transformer.bytes, 1e-3)
	require.InEpsilon(t, 197.2*(1<<20)/h100.Links, p.over("h100", "", transformer, 8)-14*p.networks["h100 within"]["latency"], 1e-3)
	_, err = readPrices("testdata", lines, 0)
	require.Error(t, err)
	_, err = rate(nil)
	require.Error(t, err)
}
