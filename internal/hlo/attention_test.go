package hlo_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// attentionCase is attention and its gradient. Its defaults are the lengths of testdata/attention.py.
type attentionCase struct {
	layout             compute.AttentionAxesLayout
	kind               dtypes.DType
	heads, keys, width int // of the keys
	causal, lengths    bool
	bias               []int
	scale              float64
	devices            int
	change             func(o *compute.ScaledDotProductAttentionConfig, b program)
}

const headsFirst = compute.AttentionAxesLayoutBHSD

func plainAttention() attentionCase {
	return attentionCase{layout: compute.AttentionAxesLayoutBSHD, kind: dtypes.BFloat16, heads: 4, keys: 16, width: 8, scale: 0.25}
}

// build returns the attention and its gradient for CUDA, or an error.
func (c attentionCase) build(t *testing.T) (*hlo.Module, error) {
	b := programOf(hlo.New("attention", func(m *hlo.Module) (compute.Executable, error) { return &executable{module: m}, nil }).ForCUDA(128))
	if c.devices > 1 {
		require.NoError(t, b.DistributedAutoSharding(compute.Mesh{Name: "mesh", AxesNames: []string{"data"}, AxesSizes: []int{c.devices}}))
	}
	parameter := func(name string, heads, time int) compute.Value {
		dims := []int{2, time, heads, c.width}
		if c.layout == headsFirst {
			dims = []int{2, heads, time, c.width}
		}
		return must1(t)(b.Parameter(name, shapes.Make(c.kind, dims...), nil))
	}
	query, key, value, gradient := parameter("query", 4, 16), parameter("key", c.heads, c.keys), parameter("value", c.heads, c.keys), parameter("gradient", 4, 16)
	o := compute.ScaledDotProductAttentionConfig{Causal: c.causal, Scale: c.scale}
	if c.lengths {
		o.QuerySeqLen = must1(t)(b.Parameter("queries", shapes.Make(dtypes.Int32, 2), nil))
		o.KeyValueSeqLen = must1(t)(b.Parameter("keys", shapes.Make(dtypes.Int32, 2), nil))
	}
	if c.bias != nil {
		o.Bias = must1(t)(b.Iota(shapes.Make(c.kind, c.bias...), 3))
	}
	if c.change != nil {
		c.change(&o, b)
	}
	output, states, err := b.FusedScaledDotProductAttention(query, key, value, c.layout, &o)
	if err != nil {
		_, _, _, backErr := b.FusedScaledDotProductAttentionVJP(query, key, value, c.layout, &o, query, []compute.Value{query}, query)
		require.True(t, compute.IsNotImplemented(backErr), backErr)
		m := moduleFrom(t, b, []compute.Value{query})
		require.NotContains(t, m.Text(), "custom_call")
		require.Zero(t, m.Ops[compute.OpTypeFusedScaledDotProductAttention]+m.Ops[compute.OpTypeFusedScaledDotProductAttentionVJP])
		return nil, err
	}
	_, _, _, err = b.FusedScaledDotProductAttentionVJP(query, key, value, c.layout, &o, output, nil, gradient)
	require.ErrorContains(t, err, "expected 1 state")
	require.False(t, compute.IsNotImplemented(err), err)
	dQuery, dKey, dValue, err := b.FusedScaledDotProductAttentionVJP(query, key, value, c.layout, &o, output, states, gradient)
	require.NoError(t, err)
	m := moduleFrom(t, b, []compute.Value{output, dQuery, dKey, dValue})
	require.Equal(t, 1, m.Ops[compute.OpTypeFusedScaledDotProductAttention])
	require.Equal(t, 1, m.Ops[compute.OpTypeFusedScaledDotProductAttentionVJP])
	return m, nil
}

// called has a program's cuDNN calls, with each value named by its origin.
type called struct {
	calls   []customCall
	results []string
}

type customCall struct {
	target, version, layouts, resultLayouts, types string
	operands                                       []string
	config                                         map[string]any
}

var (
	madePattern      = regexp.MustCompile(`(?m)^ *(%[^=]*) = "stablehlo\.(\w+)"\((.*?)\)`)
	permutedPattern  = regexp.MustCompile(`permutation = array<i64: ([^>]*)>`)
	returnPattern    = regexp.MustCompile(`return"?[ (](%[^:)]*)`)
	iotaPattern      = regexp.MustCompile(`iota_dimension = (\d).*-> (.*)`)
	attributePattern = regexp.MustCompile(`(api_version|call_target_name|backend_config|operand_layouts|result_layouts) = (\d+|"(?:[^"\\]|\\.)*"|\[(?:dense<[^>]*> : tensor<\d+xindex>(?:, )?)*\])`)
	typesPattern     = regexp.MustCompile(`: (\(tensor.*-> .*)$`)
)

// calledBy parses JAX's text and ours.
func calledBy(t *testing.T, text string) called {
	var p called
	text = regexp.MustCompile(`\n {6,}`).ReplaceAllString(text, " ")
	text = strings.ReplaceAll(text, "\n    } : (", "} : (")
	names := map[string]string{}
	known := func(list string) (all []string) {
		for name := range strings.SplitSeq(list, ", ") {
			if name == "" {
				continue
			}
			made, ok := names[strings.TrimSpace(name)]
			if !ok { // parameters have one order: p0 and arg0
				made = "input " + strings.TrimLeft(strings.TrimSpace(name), "%parg")
			}
			all = append(all, made)
		}
		return all
	}
	for line := range strings.Lines(text) {
		if found := returnPattern.FindStringSubmatch(line); found != nil {
			p.results = known(found[1])
			continue
		}
		found := madePattern.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		operands := known(found[3])
		switch found[2] {
		case "transpose":
			names[found[1]] = operands[0]
			if by := permutedPattern.FindStringSubmatch(line)[1]; by != "0, 1, 2, 3" {
				names[found[1]] += " by " + by
			}
		case "iota":
			made := iotaPattern.FindStringSubmatch(line)
			names[found[1]] = "iota " + made[1] + made[2]
		case "custom_call":
			c := customCall{operands: operands, types: typesPattern.FindStringSubmatch(strings.TrimSpace(line))[1]}
			for _, a := range attributePattern.FindAllStringSubmatch(line, -1) {
				switch a[1] {
				case "api_version":
					c.version = a[2]
				case "call_target_name":
					c.target = a[2]
				case "operand_layouts":
					c.layouts = a[2]
				case "result_layouts":
					c.resultLayouts = a[2]
				case "backend_config":
					config := strings.NewReplacer(`\"`, `"`, `'`, `"`).Replace(a[2][1 : len(a[2])-1])
					require.NoError(t, json.Unmarshal([]byte(config), &c.config), config)
				}
			}
			outputs := strings.Split(found[1], ", ") // ours: %3, %4; JAX's: %3:2, which are %3#0 and %3#1
			if name, n, ok := strings.Cut(found[1], ":"); ok {
				outputs = nil
				for i := range int(n[0] - '0') {
					outputs = append(outputs, fmt.Sprintf("%s#%d", name, i))
				}
			}
			for i, name := range outputs {
				names[name] = fmt.Sprintf("%s, output %d", c.target, i)
			}
			p.calls = append(p.calls, c)
		}
	}
	require.Len(t, p.calls, 2)
	for _, c := range p.calls {
		require.NotEmpty(t, c.target)
		require.NotEmpty(t, c.layouts)
		require.NotEmpty(t, c.resultLayouts)
		require.NotEmpty(t, c.config)
		require.Equal(t, "2", c.version)
	}
	return p
}

// The program is the one that JAX lowers for CUDA, except for the names of values.
func TestAttention_isJAXs(t *testing.T) {
	file, err := os.ReadFile("testdata/attention.mlir")
	require.NoError(t, err)
	jax := map[string]called{}
	for part := range strings.SplitSeq(string(file), "// ") {
		if name, text, ok := strings.Cut(part, "\n"); ok {
			jax[name] = calledBy(t, text)
		}
	}
	plain := plainAttention()
	rows := map[string]attentionCase{}
	row := func(name string, change func(c *attentionCase)) {
		c := plain
		change(&c)
		rows[name] = c
	}
	row("plain", func(c *attentionCase) { c.scale = 0 })
	row("causal f16", func(c *attentionCase) { c.causal, c.kind = true, dtypes.Float16 })
	row("lengths, fewer heads of keys", func(c *attentionCase) { c.lengths, c.heads, c.keys = true, 2, 24 })
	row("causal lengths", func(c *attentionCase) { c.causal, c.lengths = true, true })
	row("shared bias, causal", func(c *attentionCase) { c.bias, c.causal = []int{1, 1, 16, 16}, true })
	row("heads first, f16, fewer heads of keys", func(c *attentionCase) { c.layout, c.heads, c.kind = headsFirst, 2, dtypes.Float16 })
	row("heads first, bias", func(c *attentionCase) { c.layout, c.bias, c.keys = headsFirst, []int{2, 4, 16, 24}, 24 })
	require.Len(t, rows, len(jax))
	d := open(t)
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			m, err := c.build(t)
			require.NoError(t, err)
			require.Len(t, jax[name].results, 4)
			require.Equal(t, jax[name], calledBy(t, m.Text()))

			_, err = d.compile(m) // XLA's CPU parses the call but lacks the function
			require.ErrorContains(t, err, "__cudnn$fmha")
			require.NotContains(t, strings.Split(err.Error(), "\n")[0], "parse")

			// Control: other masks and scales differ.
			if c.keys == 16 {
				c.causal = !c.causal
				m, err = c.build(t)
				require.NoError(t, err)
				require.NotEqual(t, jax[name], calledBy(t, m.Text()))
				c.causal = !c.causal
			}
			c.scale = 0.125
			m, err = c.build(t)
			require.NoError(t, err)
			require.NotEqual(t, jax[name], calledBy(t, m.Text()))
		})
	}
}

// Attention that cuDNN does not support, or for which GoMLX has no gradient, is left to GoMLX. The refused call leaves
// no statements.
func TestAttention_refused(t *testing.T) {
	type config = compute.ScaledDotProductAttentionConfig
	change := func(f func(o *config, b program)) func(c *attentionCase) {
		return func(c *attentionCase) { c.change = f }
	}
	for name, row := range map[string]struct {
		want   string
		change func(c *attentionCase)
	}{
		"float32":               {"float16", func(c *attentionCase) { c.kind = dtypes.Float32 }},
		"a width of 12":         {"multiples of 8", func(c *attentionCase) { c.width = 12 }},
		"a width of 136":        {"up to 128", func(c *attentionCase) { c.width = 136 }},
		"odd heads":             {"do not divide", func(c *attentionCase) { c.heads = 3 }},
		"no keys":               {"no elements", func(c *attentionCase) { c.keys = 0 }},
		"bias and lengths":      {"with a bias", func(c *attentionCase) { c.bias, c.lengths = []int{1, 4, 16, 16}, true }},
		"bias of one query":     {"1 or heads", func(c *attentionCase) { c.bias = []int{1, 1, 1, 16} }},
		"bias of 3 heads":       {"1 or heads", func(c *attentionCase) { c.bias = []int{1, 3, 16, 16} }},
		"bias of odd keys":      {"odd number", func(c *attentionCase) { c.bias, c.keys = []int{1, 1, 16, 15}, 15 }},
		"causal, more keys":     {"causal", func(c *attentionCase) { c.causal, c.keys = true, 24 }},
		"two devices":           {"2 devices", func(c *attentionCase) { c.devices = 2 }},
		"another order of axes": {"order", func(c *attentionCase) { c.layout = 7 }},
		"quantized":             {"quantized", change(func(o *config, _ program) { o.QuantizedMatmuls = true })},
		"a mask": {"masks", change(func(o *config, b program) {
			o.Mask = must1(t)(b.Constant([]bool{true}, 1, 1))
		})},
		"lengths of keys alone": {"alone", change(func(o *config, b program) {
			o.KeyValueSeqLen = must1(t)(b.Parameter("keys", shapes.Make(dtypes.Int32, 2), nil))
		})},
		"long lengths": {"int32", change(func(o *config, b program) {
			o.KeyValueSeqLen = must1(t)(b.Parameter("keys", shapes.Make(dtypes.Int64, 2), nil))
			o.QuerySeqLen = o.KeyValueSeqLen
		})},
		"no scale": {"finite", change(func(o *config, _ program) { o.Scale = math.Inf(1) })},
		"bias of another type": {"another type", change(func(o *config, b program) {
			o.Bias = must1(t)(b.Iota(shapes.Make(dtypes.Float32, 1, 1, 16, 16), 3))
		})},
		"a bias that may be learnt": {"inputs", change(func(o *config, b program) {
			learnt := must1(t)(b.Parameter("bias", shapes.Make(dtypes.BFloat16, 1, 4, 16, 1), nil))
			o.Bias = must1(t)(b.Add(must1(t)(b.Iota(shapes.Make(dtypes.BFloat16, 1, 4, 16, 16), 3)), must1(t)(b.BroadcastInDim(learnt, shapes.Make(dtypes.BFloat16, 1, 4, 16, 16), []int{0, 1, 2, 3}))))
		})},
		"a bias of a branch": {"inputs", change(func(o *config, b program) {
			shape := shapes.Make(dtypes.BFloat16, 1, 1, 16, 16)
			learnt := must1(t)(b.Parameter("bias", shape, nil))
			branch := func(value func(f compute.Function) (compute.Value, error)) compute.Function {
				f, err := b.Closure()
				require.NoError(t, err)
				require.NoError(t, f.Return([]compute.Value{must1(t)(value(f))}, nil))
				return f
			}
			out, err := b.If(must1(t)(b.Constant([]bool{true})),
				branch(func(f compute.Function) (compute.Value, error) { return f.Identity(learnt) }),
				branch(func(f compute.Function) (compute.Value, error) { return f.Iota(shape, 3) }))
			require.NoError(t, err)
			o.Bias = out[0]
		})},
	} {
		t.Run(name, func(t *testing.T) {
			c := plainAttention()
			row.change(&c)
			_, err := c.build(t)
			require.True(t, compute.IsNotImplemented(err), err)
			require.ErrorContains(t, err, row.want)
		})
	}
}
