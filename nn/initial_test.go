package nn_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
)

// Initializers draw as Keras's do: deviation, mean and maximum of large kernels.
func TestInitializers(t *testing.T) {
	begins := peers(t).Begins
	require.NotEmpty(t, begins)
	store := model.NewStore()
	require.NoError(t, store.SetRNGStateFromSeed(3))
	scope := store.RootScope()
	of := func(name, as string, dims []int) *model.Variable {
		return scope.WithInitializer(nn.Initial(name)).VariableWithShape(as, shapes.Make(dtypes.Float32, dims...))
	}
	variables := map[string]*model.Variable{}
	for key := range begins {
		name, rest, _ := strings.Cut(key, " ")
		var dims []int
		require.NoError(t, json.Unmarshal([]byte("["+strings.ReplaceAll(rest, " ", ",")+"]"), &dims))
		variables[key] = of(name, key, dims)
	}
	matrices := map[string][]int{"tall": {30, 7}, "wide": {7, 28}, "square": {64, 64}, "window": {3, 2, 5}, "number": {1, 1}}
	for name, dims := range matrices {
		variables[name] = of("orthogonal", name, dims)
	}
	require.NoError(t, store.InitializeVariables(plugintest.Go(t), nil))
	values := func(name string) (list []float64) {
		v, err := variables[name].Value()
		require.NoError(t, err)
		for _, x := range tensors.MustCopyFlatData[float32](v) {
			list = append(list, float64(x))
		}
		return list
	}
	for key, want := range begins {
		var sum, squares, greatest float64
		list := values(key)
		for _, x := range list {
			sum += x
			greatest = max(greatest, math.Abs(x))
		}
		mean := sum / float64(len(list))
		for _, x := range list {
			squares += (x - mean) * (x - mean)
		}
		deviation := math.Sqrt(squares / float64(len(list)))
		require.InDelta(t, want.Deviation, deviation, 0.02*want.Deviation, key)
		require.InDelta(t, want.Mean, mean, 0.03*want.Deviation, key)
		tail := 0.01
		if strings.HasPrefix(key, "random_normal") {
			tail = 0.3
		}
		require.InDelta(t, want.Greatest, greatest, tail*want.Greatest, key)
	}
	for name, dims := range matrices {
		columns, list := dims[len(dims)-1], values(name)
		rows := len(list) / columns
		at := func(i, j int) float64 { return list[i*columns+j] }
		if rows < columns {
			rows, columns = columns, rows
			at = func(i, j int) float64 { return list[j*rows+i] }
		}
		for j := range columns {
			for k := range columns {
				product := 0.0
				for i := range rows {
					product += at(i, j) * at(i, k)
				}
				want := 0.0
				if j == k {
					want = 1
				}
				require.InDelta(t, want, product, 1e-5, "%s: %d·%d", name, j, k)
			}
		}
	}
	require.PanicsWithError(t, "nn: initializer \"glorot\": unknown name; did you mean \"glorot_normal\"?\n  known: glorot_normal, glorot_uniform, he_normal, he_uniform, "+
		"lecun_normal, lecun_uniform, ones, orthogonal, random_normal, random_uniform, truncated_normal, zeros", func() { nn.Initial("glorot")(nil, shapes.Shape{}) })
}
