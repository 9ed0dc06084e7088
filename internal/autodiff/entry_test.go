package autodiff_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestS10_everyEntryPoint: with any single import of lazo, graph.Gradient is right from the first graph on. Each row is
// its own program, because in this process the rules are replaced already. Packages without a row depend on this one,
// as xla does.
func TestS10_everyEntryPoint(t *testing.T) {
	const (
		onGo       = "backend := check(gobackend.New(\"\"))\n"
		gradient   = onGo + "fmt.Print(check(graph.CallOnce(backend, wrong, []float32{1, 2, 3, 4})).Value())"
		right      = "[1 12 23 34]"
		layer      = "store := model.NewStore()\nfmt.Print(check(model.CallOnce(backend, store, func(scope *model.Scope, x *graph.Node) *graph.Node {\n%s\n}, [][][]float32{{{1, 2}, {3, 5}}})).Shape())"
		trainerRun = `var w *model.Variable
	store := model.NewStore()
	trainer := gomlx.NewTrainer(backend, store, func(scope *model.Scope, x *graph.Node) *graph.Node {
		w = scope.WithInitializer(initializer.One).VariableWithShape("w", x.Shape())
		return convolved(w.NodeValue(x))
	}, func(labels, out []*graph.Node) *graph.Node { return weighted(out[0]) }, optimizer.StochasticGradientDescent().WithDecay(false).WithLearningRate(1).Done(), nil, nil)
	batch := gomlx.Batch{Inputs: []*tensors.Tensor{tensors.FromValue([]float32{1, 2, 3, 4})}, Labels: []*tensors.Tensor{tensors.FromValue([]float32{0})}}
	check(trainer.TrainStep(batch))
	fmt.Print(check(w.Value()).Value())`
	)
	rows := []struct{ name, imports, body, want string }{
		{"xla, not opened", `_ "github.com/lazo-ml/lazo/xla"`, gradient, right},
		{"xla.Open, GoMLX's trainer", `"context"; "github.com/lazo-ml/lazo/xla"`, `backend := check(xla.Open(context.Background(), "cpu"))` + "\n" +
			strings.TrimPrefix(gradient, onGo) + "\n" + trainerRun, right + "[0 -11 -22 -33]"},
		{"nn.RMSNorm, nn.LSTM", `"github.com/lazo-ml/lazo/nn"`, onGo + strings.Replace(layer, "%s", `y := nn.LSTM{Units: 3}.Apply(scope.In("lstm"), x)
			return graph.Gradient(graph.Add(graph.ReduceAllSum(nn.RMSNorm{}.Apply(scope.In("norm"), x)), graph.ReduceAllSum(y)), x)[0]`, 1), "(Float32)[1, 2, 2]"},
	}
	args := []string{"list", "-f", "{{.ImportPath}} {{.Deps}}"}
	for _, name := range []string{"xla", "xla/ops", "nn", "nn/losses", "metrics", "optim", "strategies", "managed", "flaxlike", "xla/export"} {
		args = append(args, "github.com/lazo-ml/lazo/"+name)
	}
	list, err := exec.CommandContext(t.Context(), "go", args...).Output()
	require.NoError(t, err)
	depend := strings.Split(strings.TrimSpace(string(list)), "\n")
	require.Len(t, depend, 10)
	for _, line := range depend {
		require.Contains(t, line, " github.com/lazo-ml/lazo/internal/autodiff ")
	}
	dir := t.TempDir()
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, string(rune('a'+i)), "main.go")
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer("IMPORTS", row.imports, "BODY", row.body).Replace(entryProgram)), 0o644))
			out, err := exec.CommandContext(t.Context(), "go", "run", "-ldflags=-w", path).CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, row.want, string(out))
		})
	}
	t.Logf("S10: %d programs, each of which knows lazo by one import; %d packages", len(rows), len(depend))
}

// entryProgram has a gradient that GoMLX's own rules get wrong: [12 23 34 40].
const entryProgram = `package main

import (
	"fmt"
	"log"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	gomlx "github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	IMPORTS
)

var (
	_ = gobackend.New
	_ = gomlx.Batch{}
	_ = optimizer.Adam
	_ = model.NewStore
	_ = initializer.One
	_ = tensors.FromShape
)

func check[T any](v T, err error) T {
	if err != nil {
		log.Fatalf("%+v", err)
	}
	return v
}

func convolved(x *graph.Node) *graph.Node {
	kernel := graph.Reshape(graph.Const(x.Graph(), []float32{1, 10}), 2, 1, 1)
	return graph.Reshape(graph.Convolve(graph.Reshape(x, 1, 4, 1), kernel).PadSame().Done(), 4)
}

func weighted(y *graph.Node) *graph.Node {
	return graph.ReduceAllSum(graph.Mul(y, graph.Const(y.Graph(), []float32{1, 2, 3, 4})))
}

func wrong(x *graph.Node) *graph.Node { return graph.Gradient(weighted(convolved(x)), x)[0] }

func main() {
	BODY
}
`
