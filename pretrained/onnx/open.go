package onnx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/onnx-gomlx/onnx"
	"github.com/gomlx/onnx-gomlx/onnx/parser"
	"google.golang.org/protobuf/proto"

	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/internal/shield"
)

// Options selects parts of a file.
type Options struct {
	// Constants are values of inputs that are the same in all batches, as int64(16000) or a tensor; the network keeps
	// them. Batches omit these inputs. Shapes and branches of If may depend on them.
	Constants map[string]any
	// Outputs names the outputs, also values between nodes, like features for another head. Nil means the file's.
	Outputs []string
}

// Network is a file's network. flaxlike.New takes it, with its weights. A custom step builds it at the scope "model" of
// a state with its weights:
//
//	state, err := managed.New(strategy, network.Weights(), managed.WithOptimizer(adam))
//	step := managed.TrainStep(func(b *managed.Builder) {
//		logits := network.Outputs(b.Scope().In("model"), b.Field)["logits"]
//		…
//
// A struct that embeds a *Network and has an own method Outputs adds a head or changes the inputs.
//
// The variables are the file's floating-point initializers with at least one axis, by their names, where "/" is "|".
// They are trained; optim.Frozen excludes some. All else is constant, also limits of Clip, initializers of branches,
// and means and variances of BatchNormalization, which computes as in predictions.
type Network struct {
	Inputs []Input

	names   []string // of the outputs
	weights []weight
	mu      sync.Mutex // building changes parsed
	parsed  onnx.Model
	steps   []step
}

// Input is an array of a batch. A size of -1 is any, and the same at all inputs that give it the same name in the file.
type Input struct {
	Name  string
	DType dtypes.DType
	Dims  []int
}

type weight struct {
	name  string
	kind  int64 // ONNX's data type
	shape shapes.Shape
	data  []byte // little-endian
}

const (
	mostBytes = 1<<31 - 1 // as protobuf
	mostParts = 500_000   // messages and texts in lists; each takes at most 250 bytes
	mostNodes = 100_000
	mostDepth = 8 // of branches in branches
)

// Open reads a file, whose weights the network keeps. Files are untrusted: sizes are bounded by that of the file, at
// most 2 GiB, but a graph may ask for much memory when it runs. External data is an error.
//
// Errors: a damaged file, unimplemented operators and attributes, with the nodes, and operator sets other than 13 to
// 21.
func Open(ctx context.Context, file string, options Options) (n *Network, err error) {
	err = shield.Do(func() error {
		n, err = open(ctx, file, options)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("onnx: open %s: %w", file, err)
	}
	return n, nil
}

func open(ctx context.Context, file string, options Options) (*Network, error) {
	if err := shield.Context(ctx); err != nil {
		return nil, err
	}
	text, err := regular.Read(file, mostBytes)
	if err != nil {
		return nil, err
	}
	of, err := decode(text)
	if err != nil {
		return nil, err
	}
	g := of.child("graph")
	if err := checkModel(ctx, of, g, options); err != nil {
		return nil, err
	}
	r := rewriter{ctx, map[string]message{}, map[string]bool{}, map[string]int64{}}
	if err := r.graph(g); err != nil {
		return nil, err
	}
	n := &Network{names: slices.Clone(options.Outputs), weights: g.takeWeights(r.static)}
	if n.names == nil {
		n.names = g.named("output")
	}
	if err := n.describe(g, options.Constants); err != nil {
		return nil, err
	}
	n.steps = stepsTo(g, n.names)
	if err := shield.Context(ctx); err != nil {
		return nil, err
	}
	if text, err = proto.Marshal(of.Interface()); err != nil {
		return nil, err
	}
	if n.parsed, err = parser.Parse(text); err != nil {
		return nil, err
	}
	n.parsed.DisableFusion() // it would make new weights
	n.parsed.WithExternalDataReader(refused{})
	if len(options.Constants) > 0 {
		n.parsed.WithInputsAsConstants(maps.Clone(options.Constants))
	}
	return n, nil
}

func (n *Network) describe(g message, constants map[string]any) error {
	unused := maps.Clone(constants)
	for _, v := range g.list("input") {
		in, err := inputOf(v)
		if err != nil {
			return err
		}
		value, constant := constants[in.Name]
		delete(unused, in.Name)
		if !constant {
			n.Inputs = append(n.Inputs, in)
			continue
		}
		if err := in.fits(value); err != nil {
			return err
		}
	}
	if len(unused) > 0 {
		return fmt.Errorf("the constants are %q, expected names of inputs: %q", slices.Sorted(maps.Keys(unused)), g.named("input"))
	}
	if len(n.Inputs) == 0 {
		return errors.New("the network has no input, expected one that is not in Constants")
	}
	seen := map[string]string{}
	for _, w := range n.weights {
		if other, there := seen[w.variable()]; there {
			return fmt.Errorf("the initializers %q and %q have one name as variables, %q", other, w.name, w.variable())
		}
		seen[w.variable()] = w.name
		g.addInput(w)
	}
	return nil
}

func (in Input) fits(value any) error {
	t, err := tensors.FromAnyValue(value)
	if err != nil {
		return fmt.Errorf("the constant %q: %w", in.Name, err)
	}
	fits := t.DType() == in.DType && t.Rank() == len(in.Dims)
	for i, dim := range in.Dims {
		fits = fits && (dim < 0 || dim == t.Shape().Dimensions[i])
	}
	if !fits {
		return fmt.Errorf("the constant %q is %s, expected (%s)%v", in.Name, t.Shape(), in.DType, in.Dims)
	}
	return nil
}

// refused: Open has refused external data before.
type refused struct{}

func (refused) ReadInto(info onnx.ExternalDataInfo, _ []byte) error {
	return fmt.Errorf("external data in %q is not read", info.Location)
}

func (refused) Close() error { return nil }
