package hlo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/stablehlo"
	xlashapes "github.com/gomlx/go-xla/types/shapes"
)

// ForCUDA declares a program for XLA's CUDA backend, and returns b. widestHead is the largest head width of cuDNN's
// flash attention on the devices, or 0.
func (b *Builder) ForCUDA(widestHead int) *Builder {
	b.widestHead = widestHead
	return b
}

// FusedScaledDotProductAttention computes softmax(query·keyᵀ·scale + bias)·value for each head with cuDNN's flash
// attention. The state is the log-sum-exp of each row of scores: float32 of shape [batch, heads, time].
//
// It needs [Builder.ForCUDA], float16 or bfloat16, a head width that is a multiple of 8, one device, and a bias
// independent of inputs. Key and value may have fewer heads. All else, like masks, returns compute.ErrNotImplemented.
// No GPU has run these calls; tests compare JAX's text.
func (f *Function) FusedScaledDotProductAttention(
	query, key, value compute.Value, axesLayout compute.AttentionAxesLayout, options *compute.ScaledDotProductAttentionConfig,
) (output compute.Value, statesForVJP []compute.Value, err error) {
	out, err := f.flash(compute.OpTypeFusedScaledDotProductAttention, axesLayout, options, []compute.Value{query, key, value})
	if err != nil {
		return nil, nil, err
	}
	return out[0], out[1:], nil
}

func (f *Function) FusedScaledDotProductAttentionVJP(
	query, key, value compute.Value, axesLayout compute.AttentionAxesLayout, options *compute.ScaledDotProductAttentionConfig,
	output compute.Value, statesForVJP []compute.Value, dOutput compute.Value,
) (dQuery, dKey, dValue compute.Value, err error) {
	operands := slices.Concat([]compute.Value{query, key, value}, statesForVJP, []compute.Value{dOutput})
	out, err := f.flash(compute.OpTypeFusedScaledDotProductAttentionVJP, axesLayout, options, operands, output)
	if err != nil {
		return nil, nil, nil, err
	}
	return out[0], out[1], out[2], nil
}

func (f *Function) flash(
	kind compute.OpType, layout compute.AttentionAxesLayout, options *compute.ScaledDotProductAttentionConfig, operands []compute.Value, last ...compute.Value,
) ([]compute.Value, error) {
	if f.b.widestHead == 0 {
		return nil, notImplemented(kind)
	}
	var o compute.ScaledDotProductAttentionConfig
	if options != nil {
		o = *options
	}
	biasAt := len(operands)
	if o.Bias != nil {
		operands = append(operands, o.Bias)
	}
	lastAt := len(operands)
	operands = append(operands, last...)
	lengthsAt := len(operands)
	for _, length := range []compute.Value{o.QuerySeqLen, o.KeyValueSeqLen} {
		if length != nil {
			operands = append(operands, length)
		}
	}
	return f.emitList(kind, operands, func(v []*value) ([]*value, error) {
		query, key, bias := v[0], v[1], v[biasAt:lastAt]
		if why := f.noFlash(layout, o, v[:3], bias, v[lengthsAt:]); why != "" {
			return nil, fmt.Errorf("%w: cuDNN's flash attention does not take %s", compute.ErrNotImplemented, why)
		}
		time, heads, back := layout.SeqAxis(), layout.HeadsAxis(), len(last) > 0
		headsFirst := func(v *value) xlashapes.Shape {
			d := dims(v)
			return like(v, d[0], d[heads], d[time], d[3])
		}
		// Memory always has the query's layout.
		var order []int
		if heads == 2 {
			order = []int{3, 1, 2, 0}
		}
		state := xlashapes.Make(dtypes.Float32, dims(query)[0], dims(query)[heads], dims(query)[time])
		name, ordered, kept := "Softmax", 1, 2
		results := []xlashapes.Shape{headsFirst(query), state}
		layouts := [][]int{order, nil}
		if back {
			if biasAt != 5 || !v[3].Shape().Equal(state) || !v[4].Shape().Equal(query.Shape()) || !v[lastAt].Shape().Equal(query.Shape()) {
				return nil, fmt.Errorf("%d states of shapes (%s), an output of shape %s and its gradient of %s; expected 1 state, %s, and the query's shape",
					biasAt-4, shapeList(shapesOf(v[3:biasAt-1])), v[lastAt].Shape(), v[biasAt-1].Shape(), state)
			}
			name, ordered, kept = "SoftmaxBackward", 3, 3
			results = []xlashapes.Shape{headsFirst(query), headsFirst(key), headsFirst(key)}
			layouts = [][]int{order, order, order}
		}
		for _, b := range bias {
			name = "ScaleBias" + name
			if back {
				results, layouts = append(results, b.Shape()), append(layouts, nil)
			}
		}
		results, layouts = append(results, xlashapes.Make(dtypes.Uint8, 0)), append(layouts, nil)
		out, err := stablehlo.CustomCallV2("__cudnn$fmha"+name, flashConfig(query, key, time, heads, o, back), v, make([][]int, len(v)), results, layouts)
		if err != nil {
			return nil, err
		}
		out = slices.Clone(out[:kept])
		for i := range ordered {
			if out[i], err = transpose(out[i], []int{0, heads, time, 3}); err != nil {
				return nil, err
			}
		}
		return out, nil
	})
}

func (f *Function) noFlash(layout compute.AttentionAxesLayout, o compute.ScaledDotProductAttentionConfig, v, bias, lengths []*value) string {
	t, time, heads := v[0].Shape().DType, layout.SeqAxis(), layout.HeadsAxis()
	switch {
	case layout != compute.AttentionAxesLayoutBSHD && layout != compute.AttentionAxesLayoutBHSD:
		return fmt.Sprintf("axes in the order %d", layout)
	case o.Mask != nil || o.QuantizedMatmuls:
		return "masks and quantized products"
	case len(lengths) == 1 || len(lengths)+len(bias) > 2:
		return "lengths of queries or keys alone, or with a bias"
	case f.b.devices.Count() > 1:
		return fmt.Sprintf("%d devices: each would compute the whole", f.b.devices.Count())
	case t != dtypes.Float16 && t != dtypes.BFloat16 || sameType(v...) != nil:
		return "other types than float16 or bfloat16 for all"
	case v[0].Shape().Rank() != 4 || v[1].Shape().Rank() != 4 || !v[1].Shape().Equal(v[2].Shape()):
		return "a number of axes other than 4, or values of another shape than the keys"
	}
	q, k := dims(v[0]), dims(v[1])
	switch {
	case slices.Min(q) == 0 || slices.Min(k) == 0 || q[0] != k[0] || q[3] != k[3] || q[heads]%k[heads] != 0:
		return "no elements, or keys of other batches and widths than the queries, or of heads that do not divide theirs"
	case q[3]%8 != 0 || q[3] > f.b.widestHead:
		return fmt.Sprintf("heads of width %d, but multiples of 8 up to %d", q[3], f.b.widestHead)
	case o.Causal && q[time] != k[time]: // GoMLX defines no mask for this
		return "a causal mask for more or fewer keys than queries"
	case math.IsNaN(o.Scale) || math.IsInf(o.Scale, 0):
		return "a scale that is not finite"
	}
	for _, length := range lengths {
		if !length.Shape().Equal(xlashapes.Make(dtypes.Int32, q[0])) {
			return "lengths other than an int32 for each example"
		}
	}
	for _, b := range bias {
		d := dims(b)
		switch {
		case b.Shape().DType != t || len(d) != 4 || d[0] != 1 && d[0] != q[0] || d[1] != 1 && d[1] != q[heads] || d[2] != q[time] || d[3] != k[time]:
			return "a bias of another type than the queries, or other than [1 or batch, 1 or heads, queries, keys]"
		case d[2]%2 != 0 || d[3]%2 != 0:
			return "a bias for an odd number of queries or keys"
		case !f.fixed(b):
			return "a bias that depends on the program's inputs: its gradient in GoMLX would be 0"
		}
	}
	return ""
}

func (f *Function) fixed(v *value) bool {
	needed := map[*value]bool{v: true}
	for _, s := range slices.Backward(f.text.Statements) {
		if !slices.ContainsFunc(s.Outputs, func(v *value) bool { return needed[v] }) {
			continue
		}
		if len(s.FunctionParameters) > 0 {
			return false
		}
		for _, v := range s.Outputs {
			delete(needed, v)
		}
		for _, v := range s.Inputs {
			needed[v] = true
		}
	}
	return len(needed) == 0
}

func flashConfig(query, key *value, time, heads int, o compute.ScaledDotProductAttentionConfig, back bool) string {
	q, k, mask := dims(query), dims(key), "NO_MASK"
	switch {
	case o.Causal && o.QuerySeqLen != nil:
		mask = "PADDING_CAUSAL"
	case o.Causal:
		mask = "CAUSAL"
	case o.QuerySeqLen != nil:
		mask = "PADDING"
	}
	var products strings.Builder
	product := func(name string, left, leftHeads, right int) {
		fmt.Fprintf(&products, `"%s_dot_dimension_numbers":{"lhs_contracting_dimensions":["%d"],"rhs_contracting_dimensions":["%d"],`+
			`"lhs_batch_dimensions":["0","%d"],"rhs_batch_dimensions":["0","%d"]},`, name, left, right, leftHeads, heads)
	}
	if back {
		product("bmm1_grad_gemm1", 2, 1, time)
		product("bmm1_grad_gemm2", 3, 1, time)
		product("bmm2_grad_gemm1", 2, 1, time)
		product("bmm2_grad_gemm2", 3, heads, 3)
	} else {
		product("bmm1", 3, heads, 3)
		product("bmm2", 3, 1, time)
	}
	return fmt.Sprintf(`{"operation_queue_id":"0","cudnn_fmha_backend_config":{`+
		`"algorithm":{"algo_id":"0","math_type":"TENSOR_OP_MATH","tuning_knobs":{"17":"1","24":"0"},"is_cudnn_frontend":true,"workspace_size":"0"},`+
		`"fmha_scale":%g,"intermediate_tensor_shape":{"element_type":%q,"dimensions":["%d","%d","%d","%d"],"tuple_shapes":[],`+
		`"layout":{"dim_level_types":[],"dim_unique":[],"dim_ordered":[],"minor_to_major":["3","2","1","0"],"tiles":[],"element_size_in_bits":"0",`+
		`"memory_space":"0","index_primitive_type":"PRIMITIVE_TYPE_INVALID","pointer_primitive_type":"PRIMITIVE_TYPE_INVALID",`+
		`"dynamic_shape_metadata_prefix_bytes":"0"},"is_dynamic_dimension":[false,false,false,false]},"is_flash_attention":true,"mask_type":%q,%s`+
		`"dropout_rate":0,"seed":42,"sliding_window_length":0,"max_seg_per_batch":1,"is_paged_attention":false}}`,
		cmp.Or(o.Scale, 1/math.Sqrt(float64(q[3]))), map[dtypes.DType]string{dtypes.Float16: "F16", dtypes.BFloat16: "BF16"}[query.Shape().DType],
		q[0], q[heads], q[time], k[time], mask, products.String())
}
