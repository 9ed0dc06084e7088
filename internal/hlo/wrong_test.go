package hlo_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// operands are values for wrong calls.
type operands struct {
	program
	t                                               testing.TB
	f, g, vector, scalar, i, index, c, truth, state compute.Value
}

func newOperands(t testing.TB) operands {
	b := programOf(hlo.New("wrong", func(m *hlo.Module) (compute.Executable, error) { return &executable{module: m}, nil }))
	p := func(kind dtypes.DType, dims ...int) compute.Value {
		t.Helper()
		return must1(t)(b.Parameter(fmt.Sprintf("p%v%v%d", kind, dims, len(t.Name())), shapes.Make(kind, dims...), nil))
	}
	return operands{
		b, t, p(dtypes.Float32, 2, 3), p(dtypes.Float32, 3, 2), p(dtypes.Float32, 3), p(dtypes.Float32), p(dtypes.Int32, 2, 3),
		p(dtypes.Int32), p(dtypes.Complex64, 2, 3), p(dtypes.Bool, 2, 3), p(dtypes.Uint64, 3),
	}
}

// yes is a bool scalar.
func (o operands) yes() compute.Value { return must(o.Constant([]bool{true})) }

// Each operation has rows here, or is elementwise or a reduction. Those get rows from their tables: a wrong dtype,
// operands of two dtypes, dimensions that do not fit.
func TestWrongArguments(t *testing.T) {
	rows := wrong
	add := func(name, want string, do func(o operands) (compute.Value, error)) {
		rows = append(rows, struct {
			name, want string
			do         func(o operands) (compute.Value, error)
		}{name, want, do})
	}
	call := func(name string, pick func(o operands) []compute.Value) func(o operands) (compute.Value, error) {
		return func(o operands) (compute.Value, error) {
			out, err := method(o.Function, name, pick(o)...)
			return out[0], err
		}
	}
	bad := func(o operands, takes []dtypes.DType) compute.Value {
		for kind, op := range map[dtypes.DType]compute.Value{dtypes.Float32: o.f, dtypes.Int32: o.i, dtypes.Complex64: o.c, dtypes.Bool: o.truth} {
			refused := true
			for _, k := range takes {
				refused = refused && k != kind && !(strings.HasPrefix(k.String(), "Int") && kind == dtypes.Int32)
			}
			if refused {
				return op
			}
		}
		return nil
	}
	for name, takes := range unaryTypes {
		if name == "Identity" || bad(newOperands(t), takes) == nil {
			continue
		}
		add(name, "expected", call(name, func(o operands) []compute.Value { return []compute.Value{bad(o, takes)} }))
	}
	for name := range binaryTypes {
		add(name, "", call(name, func(o operands) []compute.Value { return []compute.Value{o.f, o.i} }))
		add(name, "", call(name, func(o operands) []compute.Value { return []compute.Value{o.f, o.g} }))
		add(name, "", call(name, func(o operands) []compute.Value { return []compute.Value{o.i, nil} }))
	}
	for name := range reduceTypes {
		for _, axis := range []int{2, -1} {
			add(name, "expected", func(o operands) (compute.Value, error) {
				x := map[bool]compute.Value{true: o.truth, false: o.i}[strings.Contains(name, "Logical")]
				out := reflect.ValueOf(o.Function).MethodByName(name).Call([]reflect.Value{reflect.ValueOf(&x).Elem(), reflect.ValueOf(axis)})
				err, _ := out[1].Interface().(error)
				return out[0].Interface(), err
			})
		}
	}
	covered := map[string]bool{}
	for i, row := range rows {
		covered[row.name] = true
		t.Run(fmt.Sprintf("%s/%d", row.name, i), func(t *testing.T) {
			var got compute.Value
			var err error
			o := newOperands(t)
			require.NotPanics(t, func() { got, err = row.do(o) })
			require.ErrorContains(t, err, row.want)
			require.Nil(t, got)
			require.True(t, strings.HasPrefix(err.Error(), "hlo: "+row.name), "the error is: %v", err)
			require.Equal(t, 1, strings.Count(err.Error(), "hlo: "), "the error is: %v", err)
			t.Log(err)
			for kind, n := range moduleFrom(t, o.program, []compute.Value{o.f}).Ops { // operations of the row's setup
				require.Contains(t, []compute.OpType{compute.OpTypeParameter, compute.OpTypeConstant, compute.OpTypeConvertDType}, kind, "%d are left", n)
			}
		})
	}
	for _, name := range operations() {
		if !covered[name] && name != "Identity" {
			t.Errorf("no wrong arguments for %s", name)
		}
	}
}

// callWith calls an operation with one operand everywhere, and zero values for the rest.
func callWith(f *hlo.Function, name string, operand compute.Value) error {
	m := reflect.ValueOf(f).MethodByName(name)
	var in []reflect.Value
	for i := range m.Type().NumIn() {
		kind := m.Type().In(i)
		switch {
		case kind == reflect.TypeFor[compute.Value]():
			in = append(in, reflect.ValueOf(&operand).Elem())
		case kind == reflect.TypeFor[[]compute.Value]() && !(m.Type().IsVariadic() && i == m.Type().NumIn()-1):
			in = append(in, reflect.ValueOf([]compute.Value{operand}))
		case m.Type().IsVariadic() && i == m.Type().NumIn()-1:
			if kind == reflect.TypeFor[[]compute.Value]() {
				in = append(in, reflect.ValueOf(&operand).Elem())
			}
		default:
			in = append(in, reflect.Zero(kind))
		}
	}
	out := m.Call(in)
	err, _ := out[len(out)-1].Interface().(error)
	return err
}

// Random arguments return an error, or a program that XLA accepts.
func TestNoPanic(t *testing.T) {
	d := open(t)
	accepted, refused, other := 0, 0, newOperands(t)
	rapid.Check(t, func(rt *rapid.T) {
		o := newOperands(t)
		all := []compute.Value{o.f, o.g, o.vector, o.scalar, o.i, o.index, o.c, o.truth, o.state}
		number := rapid.IntRange(-2, 4)
		name := rapid.SampledFrom(operations()).Draw(rt, "operation")
		m := reflect.ValueOf(o.Function).MethodByName(name)
		var in []reflect.Value
		for i := range m.Type().NumIn() {
			kind := m.Type().In(i)
			label := fmt.Sprint(i)
			var v any
			switch kind {
			case reflect.TypeFor[compute.Value]():
				op := rapid.SampledFrom(all).Draw(rt, label)
				in = append(in, reflect.ValueOf(&op).Elem())
				continue
			case reflect.TypeFor[[]compute.Value]():
				v = rapid.SliceOfN(rapid.SampledFrom(all), 0, 3).Draw(rt, label)
			case reflect.TypeFor[int]():
				v = number.Draw(rt, label)
			case reflect.TypeFor[[]int]():
				v = rapid.SliceOfN(number, 0, 4).Draw(rt, label)
			case reflect.TypeFor[[][]int]():
				v = rapid.SliceOfN(rapid.SliceOfN(number, 0, 3), 0, 3).Draw(rt, label)
			case reflect.TypeFor[[][2]int]():
				v = [][2]int{{number.Draw(rt, label), number.Draw(rt, label)}, {0, number.Draw(rt, label)}}[:rapid.IntRange(0, 2).Draw(rt, label)]
			case reflect.TypeFor[bool]():
				v = rapid.Bool().Draw(rt, label)
			case reflect.TypeFor[float32]():
				v = rapid.Float32().Draw(rt, label)
			case reflect.TypeFor[dtypes.DType]():
				v = dtypes.DType(rapid.IntRange(-1, 40).Draw(rt, label))
			case reflect.TypeFor[shapes.Shape]():
				v = shapes.Shape{DType: dtypes.DType(rapid.IntRange(-1, 40).Draw(rt, label)), Dimensions: rapid.SliceOfN(number, 0, 4).Draw(rt, label)}
			case reflect.TypeFor[compute.ReduceOpType]():
				v = compute.ReduceOpType(number.Draw(rt, label))
			case reflect.TypeFor[compute.Function]():
				f := rapid.SampledFrom([]compute.Function{
					nil, o.Function, named1(o, fmt.Sprint("f", i)), closure1(o, o.f), closure1(o, o.yes(), o.f), closure1(o, nil, o.f),
					closure1(o, o.yes(), o.scalar, o.scalar), closure1(other, other.f),
				}).Draw(rt, label)
				in = append(in, reflect.ValueOf(&f).Elem())
				continue
			case reflect.TypeFor[compute.DotGeneralConfig]():
				kind := func() dtypes.DType { return dtypes.DType(rapid.IntRange(-1, 40).Draw(rt, label)) }
				v = compute.DotGeneralConfig{AccumulatorDType: kind(), OutputDType: kind()}
			case reflect.TypeFor[compute.FFTType]():
				v = compute.FFTType(number.Draw(rt, label))
			case reflect.TypeFor[[]compute.PadAxis]():
				v = []compute.PadAxis{{Start: number.Draw(rt, label), End: number.Draw(rt, label), Interior: number.Draw(rt, label)}}
			case reflect.TypeFor[compute.ConvolveAxesConfig]():
				v = compute.ConvolveAxesConfig{InputBatch: number.Draw(rt, label), InputSpatial: rapid.SliceOfN(number, 0, 2).Draw(rt, label), KernelOutputChannels: number.Draw(rt, label)}
			case reflect.TypeFor[any]():
				v = rapid.SampledFrom([]any{nil, 1, "a", []int32{1, 2}, []string{"a"}, []bool{true}, []float32{}}).Draw(rt, label)
				in = append(in, reflect.ValueOf(&v).Elem())
				continue
			default:
				rt.Fatalf("%s takes a %v", name, kind)
			}
			in = append(in, reflect.ValueOf(v))
		}
		var out []reflect.Value
		if m.Type().IsVariadic() {
			out = m.CallSlice(in)
		} else {
			out = m.Call(in)
		}
		if err, _ := out[len(out)-1].Interface().(error); err != nil {
			refused++
			return
		}
		accepted++
		outputs, many := out[0].Interface().([]compute.Value)
		if !many {
			for _, v := range out[:len(out)-1] {
				outputs = append(outputs, v.Interface())
			}
		}
		module := moduleFrom(t, o.program, outputs)
		exec, err := d.compile(module)
		if err != nil {
			rt.Fatalf("XLA does not take %s: %v", name, err)
		}
		exec.Finalize()
	})
	t.Logf("%d accepted, %d refused, no panic", accepted, refused)
}
