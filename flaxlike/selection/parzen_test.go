package selection_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike/selection"
)

func ranges(n int, low, high float64) (space []selection.Parameter) {
	for i := range n {
		space = append(space, selection.Parameter{Name: string(rune('a' + i)), Low: low, High: high})
	}
	return space
}

func numbers(of map[string]any) (x []float64) {
	for i := range of {
		_ = i
		x = append(x, of[string(rune('a'+len(x)))].(float64))
	}
	return x
}

// minima are the functions of testdata/minima.py.
var minima = map[string]struct {
	space []selection.Parameter
	of    func(map[string]any) float64
}{
	"sphere": {ranges(3, -5, 5), func(of map[string]any) (sum float64) {
		for _, x := range numbers(of) {
			sum += (x - 1) * (x - 1)
		}
		return sum
	}},
	"branin": {[]selection.Parameter{{Name: "a", Low: -5, High: 10}, {Name: "b", Low: 0, High: 15}}, func(of map[string]any) float64 {
		x, y := of["a"].(float64), of["b"].(float64)
		return math.Pow(y-5.1/(4*math.Pi*math.Pi)*x*x+5/math.Pi*x-6, 2) + 10*(1-1/(8*math.Pi))*math.Cos(x) + 10
	}},
	"hartmann": {ranges(6, 0, 1), func(of map[string]any) (sum float64) {
		a := [4][6]float64{{10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}}
		p := [4][6]float64{{1312, 1696, 5569, 124, 8283, 5886}, {2329, 4135, 8307, 3736, 1004, 9991}, {2348, 1451, 3522, 2883, 3047, 6650}, {4047, 8828, 8732, 5743, 1091, 381}}
		for i, c := range []float64{1, 1.2, 3, 3.2} {
			inner := 0.0
			for j, x := range numbers(of) {
				inner += a[i][j] * math.Pow(x-p[i][j]*1e-4, 2)
			}
			sum -= c * math.Exp(-inner)
		}
		return sum
	}},
	"rosenbrock": {ranges(3, -2, 2), func(of map[string]any) (sum float64) {
		x := numbers(of)
		for i := range 2 {
			sum += 100*math.Pow(x[i+1]-x[i]*x[i], 2) + math.Pow(1-x[i], 2)
		}
		return sum
	}},
	"mixed": {[]selection.Parameter{{Name: "rate", Low: 1e-5, High: 1, Log: true}, {Name: "units", Low: 4, High: 256, Integer: true}, {Name: "kind", Values: []any{"a", "b", "c", "d"}}},
		func(of map[string]any) float64 {
			return math.Pow(math.Log10(of["rate"].(float64))+2.5, 2) + math.Pow((float64(of["units"].(int))-96)/64, 2) + map[any]float64{"a": 1, "b": 0, "c": 0.5, "d": 2}[of["kind"]]
		}},
}

// A Bayesian search finds minima as low as optuna's: the median of 40 seeds is below optuna's third quartile, and
// closer to optuna's median than to that of random trials.
func TestSearch_bayesianFindsMinima(t *testing.T) {
	t.Parallel()
	var peers map[string]struct{ TPE, Random [3]float64 }
	require.NoError(t, json.Unmarshal(must.M1(os.ReadFile("testdata/minima.json")), &peers))
	require.Len(t, peers, len(minima))
	for name, f := range minima {
		var found []float64
		for seed := range uint64(40) {
			found = append(found, must.M1(selection.Minimum(selection.Search{Space: f.space, Trials: 60, Seed: seed, Bayesian: true}, f.of)))
		}
		slices.Sort(found)
		quartiles, peer := [3]float64{found[9], (found[19] + found[20]) / 2, found[30]}, peers[name]
		t.Logf("%s: quartiles %.4g, optuna's %.4g, random %.4g", name, quartiles, peer.TPE, peer.Random)
		require.Less(t, quartiles[1], peer.TPE[2], name)
		require.Less(t, quartiles[1], (peer.TPE[1]+peer.Random[1])/2, name)
	}
}
