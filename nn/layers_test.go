package nn_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/xla/ops"
)

type node = graph.Node

// array is one of testdata/layers.json.
type array struct {
	Dims []int     `json:"dims"`
	Flat []float64 `json:"flat"`
}

type peerCase struct {
	Inputs         map[string]array   `json:"inputs"`
	Weights        map[string]array   `json:"weights"`
	Fixed          map[string]array   `json:"fixed"`
	Adjoints       []array            `json:"adjoints"`
	Outputs        []array            `json:"outputs"`
	Gradients      map[string]array   `json:"gradients"`
	OutputErrors   []float64          `json:"output_errors"`
	GradientErrors map[string]float64 `json:"gradient_errors"`
}

type begin struct{ Deviation, Mean, Greatest float64 }

func peers(t *testing.T) (p struct {
	Cases  map[string]peerCase `json:"cases"`
	Begins map[string]begin    `json:"begins"`
}) {
	t.Helper()
	text, err := os.ReadFile("testdata/layers.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &p))
	return p
}

func (a array) float32s() *tensors.Tensor {
	flat := make([]float32, len(a.Flat))
	for i, v := range a.Flat {
		flat[i] = float32(v)
	}
	return tensors.FromFlatDataAndDimensions(flat, a.Dims...)
}

// layersOfPeers build the layers of testdata/layers.py, which has Keras's and flax's, from the inputs and the fixed
// values.
var layersOfPeers = map[string]func(s *model.Scope, in, fixed map[string]*node) []*node{
	"dense":       one(func(s *model.Scope, x *node) *node { return nn.Dense{Units: 6}.Apply(s, x) }),
	"conv1d same": one(func(s *model.Scope, x *node) *node { return nn.Conv{Channels: 3, Window: []int{3}}.Apply(s, x) }),
	"conv2d strides": one(func(s *model.Scope, x *node) *node {
		return nn.Conv{Channels: 3, Window: []int{3, 2}, Strides: []int{2}}.Apply(s, x)
	}),
	"conv2d strides, even": one(func(s *model.Scope, x *node) *node {
		return nn.Conv{Channels: 3, Window: []int{3}, Strides: []int{2}}.Apply(s, x)
	}),
	"conv2d dilation": one(func(s *model.Scope, x *node) *node {
		return nn.Conv{Channels: 3, Window: []int{2}, Dilation: []int{2, 3}, Valid: true}.Apply(s, x)
	}),
	"conv2d groups": one(func(s *model.Scope, x *node) *node {
		return nn.Conv{Channels: 6, Window: []int{3}, Groups: 2, NoBias: true}.Apply(s, x)
	}),
	"conv3d": one(func(s *model.Scope, x *node) *node {
		return nn.Conv{Channels: 2, Window: []int{2}, Strides: []int{1, 2, 1}}.Apply(s, x)
	}),
	"conv1d causal": one(func(s *model.Scope, x *node) *node {
		return nn.Conv{Channels: 3, Window: []int{3}, Dilation: []int{2}, Causal: true}.Apply(s, x)
	}),
	"conv1d causal strides": one(func(s *model.Scope, x *node) *node {
		return nn.Conv{Channels: 3, Window: []int{4}, Strides: []int{3}, Causal: true}.Apply(s, x)
	}),
	"conv2d dilation same": one(func(s *model.Scope, x *node) *node {
		return nn.Conv{Channels: 4, Window: []int{2, 3}, Dilation: []int{3, 2}, Groups: 2}.Apply(s, x)
	}),
	"conv2d strides and dilation": one(func(s *model.Scope, x *node) *node {
		return nn.Conv{Channels: 3, Window: []int{2, 3}, Strides: []int{2, 3}, Dilation: []int{2, 3}}.Apply(s, x)
	}),
	"conv3d valid": one(func(s *model.Scope, x *node) *node {
		return nn.Conv{Channels: 2, Window: []int{1, 2, 3}, Strides: []int{2, 1, 2}, Valid: true}.Apply(s, x)
	}),
	"conv2d padding": one(func(s *model.Scope, x *node) *node {
		return nn.Conv{Channels: 3, Window: []int{3, 4}, Strides: []int{2}, Valid: true, Padding: []int{1, 2}, NoBias: true}.Apply(s, x)
	}),
	"depthwise2d": one(func(s *model.Scope, x *node) *node { return nn.DepthwiseConv{Window: []int{3}}.Apply(s, x) }),
	"depthwise2d dilation": one(func(s *model.Scope, x *node) *node {
		return nn.DepthwiseConv{Multiplier: 3, Window: []int{2, 3}, Dilation: []int{2}, Valid: true, NoBias: true}.Apply(s, x)
	}),
	"depthwise1d causal": one(func(s *model.Scope, x *node) *node {
		return nn.DepthwiseConv{Window: []int{3}, Dilation: []int{2}, Causal: true}.Apply(s, x)
	}),
	"separable1d causal": one(func(s *model.Scope, x *node) *node {
		return nn.SeparableConv{Channels: 5, Multiplier: 2, Window: []int{3}, Causal: true, NoBias: true}.Apply(s, x)
	}),
	"last step": one(func(s *model.Scope, x *node) *node { return nn.LastStep{}.Apply(s, x) }),
	"last step lengths": func(s *model.Scope, in, fixed map[string]*node) []*node {
		return []*node{nn.LastStep{}.Apply(s, nn.Masked(in["x"], fixed["lengths"]))}
	},
	"global max": one(func(s *model.Scope, x *node) *node { return nn.GlobalMaxPool{}.Apply(s, x) }),
	"global max lengths": func(s *model.Scope, in, fixed map[string]*node) []*node {
		return []*node{nn.GlobalMaxPool{}.Apply(s, nn.Masked(in["x"], fixed["lengths"]))}
	},
	"separable1d": one(func(s *model.Scope, x *node) *node {
		return nn.SeparableConv{Channels: 5, Window: []int{3}, Dilation: []int{2}}.Apply(s, x)
	}),
	"separable2d": one(func(s *model.Scope, x *node) *node {
		return nn.SeparableConv{Channels: 5, Multiplier: 2, Window: []int{3, 2}, Strides: []int{2}, Valid: true}.Apply(s, x)
	}),
	"transpose1d dilation": one(func(s *model.Scope, x *node) *node {
		return nn.ConvTranspose{Channels: 2, Window: []int{3}, Dilation: []int{2}}.Apply(s, x)
	}),
	"transpose2d": one(func(s *model.Scope, x *node) *node {
		return nn.ConvTranspose{Channels: 3, Window: []int{3, 4}, Strides: []int{2, 3}, NoBias: true}.Apply(s, x)
	}),
	"transpose3d": one(func(s *model.Scope, x *node) *node {
		return nn.ConvTranspose{Channels: 2, Window: []int{2}, Strides: []int{1, 2, 3}, Valid: true}.Apply(s, x)
	}),
	"layer norm":        one(func(s *model.Scope, x *node) *node { return nn.LayerNorm{}.Apply(s, x) }),
	"layer norm flax":   one(func(s *model.Scope, x *node) *node { return nn.LayerNorm{Epsilon: 1e-6}.Apply(s, x) }),
	"rms norm":          one(func(s *model.Scope, x *node) *node { return nn.RMSNorm{}.Apply(s, x) }),
	"rms norm one plus": one(func(s *model.Scope, x *node) *node { return nn.RMSNorm{OnePlus: true}.Apply(s, x) }),
	"window scale": one(func(s *model.Scope, x *node) *node {
		return nn.WindowScale{Of: 1, Layers: []nn.Layer{nn.Flatten{}, nn.Dense{Units: 2}}}.Apply(s, x)
	}),
	"group norm": one(func(s *model.Scope, x *node) *node { return nn.GroupNorm{Groups: 2}.Apply(s, x) }),
	"embedding": func(s *model.Scope, _, fixed map[string]*node) []*node {
		return []*node{nn.Embedding{Vocabulary: 7, Width: 3}.Apply(s, fixed["ids"])}
	},
	"embedding tied, padding": func(s *model.Scope, in, fixed map[string]*node) []*node {
		e := nn.Embedding{Vocabulary: 7, Width: 3, Padding: new(3)}
		return []*node{e.Apply(s, fixed["ids"]), e.Logits(s, in["x"])}
	},
	"sinusoidal": one(func(s *model.Scope, x *node) *node { return nn.Sinusoidal{}.Apply(s, x) }),
	"positions":  one(func(s *model.Scope, x *node) *node { return nn.Positions{Length: 8}.Apply(s, x) }),
	"gru flax": func(s *model.Scope, in, fixed map[string]*node) []*node {
		return all(nn.GRU{Units: 6, Mask: fixed["lengths"]}.ApplyStates(s, in["x"]))
	},
	"gru reset before": func(s *model.Scope, in, _ map[string]*node) []*node {
		return all(nn.GRU{Units: 6, ResetBefore: true}.ApplyStates(s, in["x"]))
	},
	"lstm flax": func(s *model.Scope, in, fixed map[string]*node) []*node {
		return all(nn.LSTM{Units: 6, Mask: fixed["lengths"]}.ApplyStates(s, in["x"]))
	},
	"attention":         attend(nn.Attention{}),
	"attention flax":    attend(nn.Attention{Causal: true}),
	"attention no bias": attend(nn.Attention{NoBias: true}),
	"attention causal":  attend(nn.Attention{Causal: true}),
	"attention lengths": attend(nn.Attention{}),
	"attention full":    attend(nn.Attention{}),
	"attention cross": func(s *model.Scope, in, _ map[string]*node) []*node {
		return []*node{nn.Attention{Heads: 4, Width: 2}.Cross(s, in["x"], in["memory"])}
	},
	"attention causal lengths": attend(nn.Attention{Causal: true}),
	"attention grouped":        attend(nn.Attention{KeyHeads: 2, Causal: true}),
	"attention grouped full":   attend(nn.Attention{KeyHeads: 2}),
	"attention scale and cap":  attend(nn.Attention{Heads: 2, Width: 4, Scale: 0.9, Cap: 1.5, Causal: true, NoBias: true}),
	"attention no key bias":    attend(nn.Attention{NoKeyBias: true, Causal: true}),
	"quick gelu":               one(func(s *model.Scope, x *node) *node { return nn.Activation("quick_gelu").Apply(s, x) }),
	"attention fused":          attend(nn.Attention{KeyHeads: 2, Fused: true, Causal: true}),
	"attention rotary":         attend(nn.Attention{Heads: 2, Width: 4, Rotary: 1e4, Causal: true, NoBias: true}),
}

func init() {
	for _, n := range []int{7, 8} {
		layersOfPeers[fmt.Sprint("depthwise1d strides ", n)] = one(func(s *model.Scope, x *node) *node {
			return nn.DepthwiseConv{Multiplier: 2, Window: []int{4}, Strides: []int{3}}.Apply(s, x)
		})
	}
	for _, of := range [][3]int{{4, 3, 2}, {5, 4, 2}, {3, 2, 3}, {4, 5, 3}, {3, 1, 2}, {3, 4, 1}} {
		for _, valid := range []bool{false, true} {
			for more := range min(of[2], 2) + 1 { // none, 0, stride-1
				c := nn.ConvTranspose{Channels: 2, Window: []int{of[1]}, Strides: []int{of[2]}, Valid: valid}
				padding, said := map[bool]string{false: "same", true: "valid"}[valid], "None"
				if more > 0 {
					c.OutputPadding = []int{(more - 1) * (of[2] - 1)}
					said = fmt.Sprint(c.OutputPadding[0])
				}
				layersOfPeers[fmt.Sprintf("transpose1d %d %d %d %s %s", of[0], of[1], of[2], padding, said)] =
					one(func(s *model.Scope, x *node) *node { return c.Apply(s, x) })
			}
		}
	}
	for kind, apply := range map[string]func(r nn.Recurrent, s *model.Scope, x *node) (*node, []*node){
		"lstm": func(r nn.Recurrent, s *model.Scope, x *node) (*node, []*node) { return nn.LSTM(r).ApplyStates(s, x) },
		"gru":  func(r nn.Recurrent, s *model.Scope, x *node) (*node, []*node) { return nn.GRU(r).ApplyStates(s, x) },
		"simple": func(r nn.Recurrent, s *model.Scope, x *node) (*node, []*node) {
			return nn.SimpleRNN(r).ApplyStates(s, x)
		},
	} {
		add := func(name string, states bool, settings nn.Recurrent) {
			layersOfPeers[strings.TrimSpace(kind+" "+name)] = func(s *model.Scope, in, fixed map[string]*node) []*node {
				r := settings
				r.Units, r.Mask = 6, fixed["lengths"]
				for i := range len(in) - 1 {
					r.Initial = append(r.Initial, in["state"+string(rune('0'+i))])
				}
				list := all(apply(r, s, in["x"]))
				if !states {
					return list[:1]
				}
				return list
			}
		}
		add("", true, nn.Recurrent{})
		add("last", false, nn.Recurrent{Last: true})
		add("initial", true, nn.Recurrent{})
		add("lengths", true, nn.Recurrent{})
		add("both lengths", false, nn.Recurrent{Bidirectional: true})
		add("both last", false, nn.Recurrent{Bidirectional: true, Last: true})
		add("layers", false, nn.Recurrent{Layers: 2})
	}
}

func one(apply func(s *model.Scope, x *node) *node) func(s *model.Scope, in, fixed map[string]*node) []*node {
	return func(s *model.Scope, in, _ map[string]*node) []*node { return []*node{apply(s, in["x"])} }
}

func all(out *node, states []*node) []*node { return append([]*node{out}, states...) }

func attend(a nn.Attention) func(s *model.Scope, in, fixed map[string]*node) []*node {
	return func(s *model.Scope, in, fixed map[string]*node) []*node {
		a := a
		if a.Heads == 0 {
			a.Heads, a.Width = 4, 2
		}
		if a.Mask = fixed["lengths"]; fixed["full"] != nil {
			a.Mask = graph.NotEqual(fixed["full"], graph.ZerosLike(fixed["full"]))
		}
		return []*node{a.Apply(s, in["x"])}
	}
}

// Each layer has the outputs and gradients of Keras or flax. The error is at most ten times theirs in float32, or ten
// units in the last place of the largest number.
func TestPeers(t *testing.T) {
	cases := peers(t).Cases
	require.Len(t, layersOfPeers, len(cases))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			build := layersOfPeers[name]
			require.NotNil(t, build)
			store := model.NewStore()
			var weights []string
			for path, w := range c.Weights {
				weights = append(weights, path)
				at := store.RootScope()
				parts := strings.Split(path, "/")
				for _, p := range parts[:len(parts)-1] {
					at = at.At("%s", p)
				}
				_, err := at.CreateVariable(parts[len(parts)-1], w.float32s())
				require.NoError(t, err)
			}
			slices.Sort(weights)
			inputs := sorted(c.Inputs)
			given := []any{[]float32{0}}
			for _, k := range inputs {
				given = append(given, c.Inputs[k].float32s())
			}
			variables := store.NumVariables()
			exec, err := model.NewExec(plugintest.CPU(t), store, func(s *model.Scope, xs []*node) []*node {
				in, fixed, g := map[string]*node{}, map[string]*node{}, xs[0].Graph()
				var wrt []*node
				for _, w := range weights {
					wrt = append(wrt, store.GetVariable("/"+w).NodeValue(g))
				}
				for i, k := range inputs {
					in[k] = xs[i+1]
					wrt = append(wrt, xs[i+1])
				}
				for k, v := range c.Fixed {
					fixed[k] = graph.ConvertDType(graph.Const(g, v.float32s()), dtypes.Int32)
				}
				outputs := build(s, in, fixed)
				require.Len(t, outputs, len(c.Outputs))
				loss := graph.ScalarZero(g, dtypes.Float32)
				for i, o := range outputs {
					require.Equal(t, c.Outputs[i].Dims, o.Shape().Dimensions)
					loss = graph.Add(loss, graph.ReduceAllSum(graph.Mul(o, graph.Const(g, c.Adjoints[i].float32s()))))
				}
				return append(outputs, ops.Gradient(loss, wrt...)...)
			})
			require.NoError(t, err)
			got, err := exec.Call(given...)
			require.NoError(t, err)
			require.Equal(t, variables, store.NumVariables(), "no variable but those of the peer")
			worst := 0.0
			near := func(what string, want array, off float64, got *tensors.Tensor) {
				greatest, far := 0.0, 0.0
				for i, v := range tensors.MustCopyFlatData[float32](got) {
					greatest = max(greatest, math.Abs(want.Flat[i]))
					if far = max(far, math.Abs(float64(v)-want.Flat[i])); v != v {
						t.Fatalf("%s: NaN at %d", what, i)
					}
				}
				limit := max(off, math.Nextafter(greatest, 0)*0x1p-23)
				worst = max(worst, far/limit)
				if far > 10*limit {
					t.Errorf("%s: %.2g off, JAX's float32 %.2g, the greatest number %.2g", what, far, off, greatest)
				}
			}
			for i, want := range c.Outputs {
				near("output", want, c.OutputErrors[i], got[i])
			}
			for i, k := range append(weights, inputs...) {
				near("gradient of "+k, c.Gradients[k], c.GradientErrors[k], got[len(c.Outputs)+i])
			}
			t.Logf("at most %.1f times JAX's error", worst)
		})
	}
}

func sorted(m map[string]array) (names []string) {
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}
