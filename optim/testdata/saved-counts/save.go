//go:build ignore

// Command save made the checkpoints next to it, whose optimizers count updates as older versions did, and the JSON files
// with the parameters after each of 6 more steps: go run save.go FOLDER NAME, in a module of that lazo. "parameters", of
// commit 4c810a77, has a count for each parameter; "all", of commit dbb4643, where TrainOnly was Only and a Builder's
// Field was Node, has one for all.
package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func build(b *managed.Builder) {
	of := func(name string) *graph.Node {
		return b.Scope().At("%s", name).VariableWithValue("v", float32(1)).NodeValue(b.Graph())
	}
	all := graph.Add(graph.Add(graph.MulScalar(of("body"), 10), of("head")), of("tail"))
	b.Loss("loss", graph.Square(graph.Sub(all, graph.ReduceAllSum(b.Field("x")))))
}

func trains(parts ...string) *managed.Stepper {
	return managed.TrainStep(build, managed.TrainOnly(func(name string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(name, "/"+part+"/") })
	}))
}

func main() {
	ctx, name := context.Background(), os.Args[2]
	chain, before := optim.Chain{optim.Adam{}}, []*managed.Stepper{trains("head", "body")}
	if name == "parameters" {
		chain = optim.Chain{optim.Masked(optim.Under("/body"), optim.Accumulate(2)), optim.Adam{}}
		head, body := trains("head"), trains("body")
		before = []*managed.Stepper{head, head, body, before[0], head, body, before[0]}
	}
	state := must(managed.New(strategies.Jit(must(xla.Open(ctx, xla.CPU))), managed.WithOptimizer(optim.New(0.1, chain...))))
	step := 0
	train := func(s *managed.Stepper) {
		step++
		x := data.X([]float32{float32(step % 3)}, 1)
		must(0, func() error { _, _, err := s.Step(ctx, state, data.Batch{Fields: []data.Field{x}}); return err }())
	}
	for range 2 {
		for _, s := range before {
			train(s)
		}
	}
	folder := must(checkpoint.Open(filepath.Join(os.Args[1], name), checkpoint.Options{}))
	must(0, folder.Save(ctx, checkpoint.Step(step), must(state.Content(ctx))))
	must(0, folder.Close())
	var after [][]float32
	for all := trains("head", "body", "tail"); len(after) < 6; {
		if name == "all" { // which gives a parameter that joins the count of the others
			all = before[0]
		}
		train(all)
		row := []float32{}
		for _, part := range []string{"head", "body", "tail"} {
			row = append(row, must(state.Value("/"+part+"/v")).Value().(float32))
		}
		after = append(after, row)
	}
	text := must(json.Marshal(map[string]any{"Saved": step - 6, "Parameters": after}))
	must(0, os.WriteFile(filepath.Join(os.Args[1], name+".json"), append(text, '\n'), 0o644))
}
