package pretrained

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// Generation configures [Generator.Generate].
type Generation struct {
	Sampling text.Sampling // the likeliest token if zero
	Seed     uint64
	Most     int     // tokens; as many as there are places if 0
	Stop     []int32 // tokens that end the text
}

// Generator continues texts with a network of [Base.CausalLM]. The keys and values of earlier places are variables of
// the state, so that a token costs one place. Use it from one goroutine.
type Generator struct {
	network       *Network
	state         *managed.State
	places        int
	prompt, token *managed.Stepper
}

// Generator returns a generator for texts of up to a number of places, prompt included. The state has the network at
// the scope "model". Close the generator after use.
func (n *Network) Generator(state *managed.State, places int) (*Generator, error) {
	err := n.err
	switch {
	case err != nil:
	case n.task != causalLM || n.family.decode == nil:
		err = fmt.Errorf("pretrained: a generator of the network %s, expected one of CausalLM", n.task)
	case places < 1 || places > mostSize:
		err = fmt.Errorf("pretrained: a generator for %d places, expected 1 to %d", places, mostSize)
	case n.family.places > 0 && places > n.family.places:
		err = fmt.Errorf("pretrained: a generator for %d places, expected at most %d, for which the network has positions", places, n.family.places)
	}
	if err != nil {
		return nil, err
	}
	g := &Generator{network: n, state: state, places: places}
	g.prompt = managed.TestStep(func(b *managed.Builder) { g.step(b, true) })
	g.token = managed.TestStep(func(b *managed.Builder) { g.step(b, false) })
	return g, nil
}

// Close frees the programs. The state keeps the variables of the places.
func (g *Generator) Close() error { return errors.Join(g.prompt.Close(), g.token.Close()) }

// step returns the logits after the first tokens of ids, as many as length, which begin a text or follow the caches.
// Further ids are padding: later tokens replace their keys and values before a place sees them.
func (g *Generator) step(b *managed.Builder, begins bool) {
	variable := func(name string, shape shapes.Shape) (value *graph.Node, set func(*graph.Node)) {
		v := b.Scope().At("generator").WithInitializer(graph.Zeros).VariableWithShape(name, shape).SetTrainable(false)
		if value = v.NodeValue(b.Graph()); begins {
			value = graph.ZerosLike(value)
		}
		return value, v.SetNodeValue
	}
	f, s := g.network.family, b.Scope().In(networkScope)
	ids, length := b.Field(idsInput), graph.Reshape(b.Field("length"))
	start, setStart := variable("position", shapes.Make(dtypes.Int32))
	caches := f.caches(s, b.Graph(), g.places)
	sets := make([]func(), len(caches))
	for i := range caches {
		key, setKey := variable(fmt.Sprintf("key_%d", i), caches[i].Key.Shape())
		value, setValue := variable(fmt.Sprintf("value_%d", i), caches[i].Value.Shape())
		caches[i] = nn.Cache{Key: key, Value: value, Position: start}
		sets[i] = func() { setKey(caches[i].Key); setValue(caches[i].Value) }
	}
	hidden := f.decode(s, ids, caches)
	for _, set := range sets {
		set()
	}
	setStart(graph.Add(start, length))
	zero, width := graph.ScalarZero(b.Graph(), dtypes.Int32), hidden.Shape().Dimensions[2]
	last := graph.DynamicSlice(hidden, []*graph.Node{zero, graph.AddScalar(length, -1), zero}, []int{1, 1, width})
	for name, v := range g.network.outputs(s, last) {
		b.Output(name, graph.ConvertDType(v, dtypes.Float32))
	}
}

// Generate returns the tokens that follow a prompt, one after another. It ends with a token of Stop, which it also
// returns, after Most tokens, at the last place, or after an error.
func (g *Generator) Generate(ctx context.Context, prompt []int32, of Generation) iter.Seq2[int32, error] {
	first, stop := slices.Clone(prompt), slices.Clone(of.Stop)
	return func(yield func(int32, error) bool) {
		if len(first) < 1 || len(first) > g.places || of.Most < 0 {
			yield(0, fmt.Errorf("pretrained: generate: a prompt of %d tokens and Most of %d, expected 1 to %d tokens, and Most of at least 0", len(first), of.Most, g.places))
			return
		}
		most := g.places - len(first) + 1 // the last token has no place
		if of.Most > 0 {
			most = min(most, of.Most)
		}
		random := rand.New(rand.NewPCG(of.Seed, 2))
		step, ids := g.prompt, first
		for range most {
			logits, err := g.logits(ctx, step, ids)
			var id int32
			if err == nil {
				id, err = of.Sampling.Draw(random, logits)
			}
			if err != nil {
				yield(0, fmt.Errorf("pretrained: generate: %w", err))
				return
			}
			if !yield(id, nil) || slices.Contains(stop, id) {
				return
			}
			step, ids = g.token, []int32{id}
		}
	}
}

// logits pads prompts to powers of two, so that few programs are compiled.
func (g *Generator) logits(ctx context.Context, step *managed.Stepper, ids []int32) ([]float32, error) {
	n, padded := len(ids), 1
	for padded < n {
		padded *= 2
	}
	ids = append(slices.Clone(ids), make([]int32, min(padded, g.places)-n)...)
	_, logs, err := step.Step(ctx, g.state, data.Batch{Size: 1, Fields: []data.Field{
		data.Named(idsInput, ids, 1, len(ids)), data.Named("length", []int32{int32(n)}, 1),
	}})
	if err != nil {
		return nil, err
	}
	logits, err := managed.Array(logs, "logits")
	if err != nil {
		return nil, err
	}
	return logits.Flat.([]float32), nil
}

// decode is build for places after those of the caches, which it extends.
func (d decoder) decode(s *model.Scope, ids *graph.Node, caches []nn.Cache) *graph.Node {
	x := d.begin(s, ids, caches[0].Position)
	for i := range d.layers {
		x = d.layer(s.In("layer_%d", i), x, func(s *model.Scope, x *graph.Node) (y *graph.Node) {
			y, caches[i] = d.attention(i).Decode(s, x, caches[i])
			return y
		})
	}
	return d.norm(s.In("norm"), x)
}

func (d decoder) caches(s *model.Scope, g *graph.Graph, places int) []nn.Cache {
	x := graph.Zeros(g, shapes.Make(d.dtype, 1, 1, d.width))
	all := make([]nn.Cache, d.layers)
	for i := range all {
		all[i] = d.attention(i).NewCache(s, x, places)
	}
	return all
}
