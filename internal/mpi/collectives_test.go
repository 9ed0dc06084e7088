package mpi

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

// numbers lists the dtypes that can be reduced.
var numbers = []pjrt.DType{pjrt.Bool, pjrt.Int8, pjrt.Int16, pjrt.Int32, pjrt.Int64, pjrt.Uint8, pjrt.Uint16, pjrt.Uint32, pjrt.Uint64,
	pjrt.Float16, pjrt.BFloat16, pjrt.Float32, pjrt.Float64, pjrt.Complex64, pjrt.Complex128}

// bytesOnly lists the dtypes that are only moved.
var bytesOnly = []pjrt.DType{pjrt.F8E5M2, pjrt.F8E4M3FN, pjrt.F8E4M3B11FNUZ, pjrt.F8E5M2FNUZ, pjrt.F8E4M3FNUZ, pjrt.F8E4M3, pjrt.F8E3M4}

const (
	sum = iota
	product
	minimum
	maximum
	and
	or
)

// reducible reports whether a dtype has a reduction.
func reducible(d pjrt.DType, op int) bool {
	isFloat := slices.Contains([]pjrt.DType{pjrt.Float16, pjrt.BFloat16, pjrt.Float32, pjrt.Float64}, d)
	isComplex := d == pjrt.Complex64 || d == pjrt.Complex128
	switch op {
	case sum, product:
		return d != pjrt.Bool
	case minimum, maximum:
		return !isComplex
	}
	return !isFloat && !isComplex
}

// encode encodes numbers in a dtype.
func encode(d pjrt.DType, values []complex128) (data []byte) {
	for _, v := range values {
		n := int64(real(v))
		switch d.Size() {
		case 1:
			data = append(data, byte(n))
		case 2:
			bits := uint16(n)
			switch d {
			case pjrt.Float16, pjrt.BFloat16:
				bits = halves[d].round(float64(n))
			}
			data = binary.LittleEndian.AppendUint16(data, bits)
		case 4:
			bits := uint32(n)
			if d == pjrt.Float32 {
				bits = math.Float32bits(float32(n))
			}
			data = binary.LittleEndian.AppendUint32(data, bits)
		case 8:
			bits := uint64(n)
			switch d {
			case pjrt.Float64:
				bits = math.Float64bits(float64(n))
			case pjrt.Complex64:
				bits = uint64(math.Float32bits(float32(real(v)))) | uint64(math.Float32bits(float32(imag(v))))<<32
			}
			data = binary.LittleEndian.AppendUint64(data, bits)
		case 16:
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(real(v)))
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(imag(v)))
		}
	}
	return data
}

// value returns a rank's element i of an array. Values are small, so that sums and products of four are exact in every
// dtype, and not 0, which would hide other factors.
func value(d pjrt.DType, rank, array, i int) complex128 {
	n := float64((rank*7+array*3+i*5)%3 + 1)
	switch {
	case d == pjrt.Bool:
		return complex(float64((rank+array+i)%3%2), 0)
	case d == pjrt.Complex64 || d == pjrt.Complex128:
		return complex(n, float64((rank+i)%2))
	case slices.Contains([]pjrt.DType{pjrt.Uint8, pjrt.Uint16, pjrt.Uint32, pjrt.Uint64}, d):
		return complex(n, 0)
	case (rank+i)%2 == 0:
		return complex(-n, 0)
	}
	return complex(n, 0)
}

func values(d pjrt.DType, rank, array, n int) []complex128 {
	list := make([]complex128, n)
	for i := range list {
		list[i] = value(d, rank, array, i)
	}
	return list
}

// fold applies a reduction to two numbers.
func fold(op int, a, b complex128) complex128 {
	switch op {
	case sum:
		return a + b
	case product:
		return a * b
	case minimum:
		return complex(min(real(a), real(b)), 0)
	case maximum:
		return complex(max(real(a), real(b)), 0)
	case and:
		return complex(float64(int64(real(a))&int64(real(b))), 0)
	}
	return complex(float64(int64(real(a))|int64(real(b))), 0)
}

// foldAll reduces the arrays of all ranks.
func foldAll(op int, of [][]complex128) []complex128 {
	result := slices.Clone(of[0])
	for _, other := range of[1:] {
		for i := range result {
			result[i] = fold(op, result[i], other[i])
		}
	}
	return result
}

// exchange is a program of one call.
type exchange struct {
	kind    string
	attrs   string
	in, out []pjrt.Shape
	alias   bool // results share their arguments' memory
}

func types(shapes []pjrt.Shape) string {
	var list []string
	for _, s := range shapes {
		list = append(list, fmt.Sprintf("tensor<%v>", s))
	}
	return strings.Join(list, ", ")
}

func (e exchange) text() string {
	var params, names, results []string
	aliases := ""
	for i, s := range e.in {
		name := fmt.Sprintf("%%x%d", i)
		names = append(names, name)
		results = append(results, fmt.Sprintf("%%r#%d", i))
		if e.alias {
			name += fmt.Sprintf(": tensor<%v> {tf.aliasing_output = %d : i32}", s, i)
			aliases += fmt.Sprintf("#stablehlo.output_operand_alias<output_tuple_indices = [%d], operand_index = %d, operand_tuple_indices = []>, ", i, i)
		} else {
			name += fmt.Sprintf(": tensor<%v>", s)
		}
		params = append(params, name)
	}
	if aliases != "" {
		aliases = ", output_operand_aliases = [" + strings.TrimSuffix(aliases, ", ") + "]"
	}
	return fmt.Sprintf(`module @exchange {
func.func @main(%s) -> (%s) {
  %%t = stablehlo.create_token : !stablehlo.token
  %%r:%d = stablehlo.custom_call @lazo.%s(%s, %%t) {api_version = 4 : i32, backend_config = {%s}%s} : (%s, !stablehlo.token) -> (%s, !stablehlo.token)
  return %s : %s
}}`, strings.Join(params, ", "), types(e.out), len(e.in)+1, e.kind, strings.Join(names, ", "), e.attrs, aliases,
		types(e.in), types(e.out), strings.Join(results, ", "), types(e.out))
}

func numbersText(numbers []int) string {
	if len(numbers) == 0 {
		return "array<i64>"
	}
	return "array<i64: " + strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]") + ">"
}

func grouped(groups [][]int) string {
	return fmt.Sprintf("site = 7 : i64, groups = %s, group_size = %d : i64", numbersText(slices.Concat(groups...)), len(groups[0]))
}

// groupings returns ways to divide ranks into groups.
func groupings(ranks int) [][][]int {
	all, back, alone := []int{}, []int{}, [][]int{}
	for r := range ranks {
		all = append(all, r)
		back = append(back, ranks-1-r)
		alone = append(alone, []int{r})
	}
	ways := [][][]int{{all}, {back}, alone}
	if ranks == 4 {
		ways = append(ways, [][]int{{0, 1}, {2, 3}}, [][]int{{0, 2}, {1, 3}}, [][]int{{3, 1}, {0, 2}})
	}
	return ways
}

// group returns a rank's group and its index in it.
func group(groups [][]int, rank int) (members []int, place int) {
	for _, g := range groups {
		if i := slices.Index(g, rank); i >= 0 {
			return g, i
		}
	}
	return nil, -1
}

// tried is an exchange with the inputs and expected outputs of each rank.
type tried struct {
	exchange
	compiled *pjrt.Executable
	array    func(rank, array int) []complex128
	want     func(array int) []complex128
}

// sizes are array lengths: below and above the size in bytes up to which arrays are packed together.
var sizes = []int{3, 10, 1_009}

const packed = 1000

func arrays(dtypes []pjrt.DType, dims ...int) (shapes []pjrt.Shape) {
	for _, d := range dtypes {
		for _, n := range sizes {
			shapes = append(shapes, pjrt.Shape{DType: d, Dims: append(slices.Clone(dims), n)})
		}
	}
	return shapes
}

func elements(s pjrt.Shape) int {
	n := 1
	for _, d := range s.Dims {
		n *= d
	}
	return n
}

// check runs an exchange and compares this rank's outputs.
func (e *tried) check(t *testing.T, rank int) (compared int) {
	if e.compiled == nil {
		e.compiled = compile(t, e.text())
	}
	var args []pjrt.Array
	for i, s := range e.in {
		args = append(args, pjrt.Array{Shape: s, Data: encode(s.DType, e.array(rank, i))})
	}
	for i, got := range run(t, e.compiled, args...) {
		want := encode(e.out[i].DType, e.want(i))
		if !slices.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("rank %d, lazo.%s {%s}, array %d of %v: byte %d: got %d…, want %d…", rank, e.kind, e.attrs, i, e.out[i], at,
				got[at:min(at+16, len(got))], want[at:min(at+16, len(want))])
		}
		compared += elements(e.out[i])
	}
	return compared
}

// exchanges lists all collectives with all dtypes, operations and groups, as one rank sees them.
func exchanges(ranks, rank int) (list []*tried) {
	for i, groups := range groupings(ranks) {
		members, place := group(groups, rank)
		size := len(members)
		for op := sum; op <= or; op++ {
			if i > 1 && op != sum {
				continue
			}
			var of []pjrt.DType
			for _, d := range numbers {
				if reducible(d, op) {
					of = append(of, d)
				}
			}
			shapes, stacked := arrays(of), arrays(of, size)
			attrs := fmt.Sprintf("%s, op = %d : i64", grouped(groups), op)
			for _, alias := range []bool{false, true} {
				whole := func(r, i int) []complex128 { return values(shapes[i].DType, r, i, elements(shapes[i])) }
				list = append(list, &tried{exchange: exchange{"all_reduce", attrs, shapes, shapes, alias}, array: whole, want: func(i int) []complex128 {
					var all [][]complex128
					for _, m := range members {
						all = append(all, whole(m, i))
					}
					return foldAll(op, all)
				}})
			}
			parts := func(r, i int) []complex128 { return values(stacked[i].DType, r, i, elements(stacked[i])) }
			list = append(list, &tried{exchange: exchange{"reduce_scatter", attrs, stacked, shapes, false}, array: parts, want: func(i int) []complex128 {
				var all [][]complex128
				n := elements(shapes[i])
				for _, m := range members {
					all = append(all, parts(m, i)[place*n:(place+1)*n])
				}
				return foldAll(op, all)
			}})
		}
		of := slices.Concat(numbers, bytesOnly)
		shapes, stacked := arrays(of), arrays(of, size)
		whole := func(r, i int) []complex128 { return values(shapes[i].DType, r, i, elements(shapes[i])) }
		parts := func(r, i int) []complex128 { return values(stacked[i].DType, r, i, elements(stacked[i])) }
		list = append(list, &tried{exchange: exchange{"all_gather", grouped(groups), shapes, stacked, false}, array: whole, want: func(i int) (all []complex128) {
			for _, m := range members {
				all = append(all, whole(m, i)...)
			}
			return all
		}})
		for _, alias := range []bool{false, true} {
			list = append(list, &tried{exchange: exchange{"all_to_all", grouped(groups), stacked, stacked, alias}, array: parts, want: func(i int) (all []complex128) {
				n := elements(shapes[i])
				for _, m := range members {
					all = append(all, parts(m, i)[place*n:(place+1)*n]...)
				}
				return all
			}})
		}
	}
	ring, shift, none := []int{}, []int{}, []int{}
	for r := range ranks {
		ring = append(ring, r, (r+1)%ranks)
		if r+1 < ranks {
			shift = append(shift, r, r+1)
		}
	}
	of := slices.Concat(numbers, bytesOnly)
	shapes := arrays(of)
	for _, pairs := range [][]int{ring, shift, none, {0, 0, ranks - 1, 1}, {1, ranks - 1}} {
		for _, alias := range []bool{false, true} {
			whole := func(r, i int) []complex128 { return values(shapes[i].DType, r, i, elements(shapes[i])) }
			list = append(list, &tried{exchange: exchange{"collective_permute", "site = 9 : i64, pairs = " + numbersText(pairs), shapes, shapes, alias}, array: whole, want: func(i int) []complex128 {
				for p := 0; p < len(pairs); p += 2 {
					if pairs[p+1] == rank {
						return whole(pairs[p], i)
					}
				}
				return make([]complex128, elements(shapes[i]))
			}})
		}
	}
	return list
}

func testCollectives(t *testing.T, ranks int) {
	onRanks(t, ranks, func(t *testing.T, w *World) {
		all := exchanges(ranks, w.Rank())
		var pieces []*tried // the last of each kind
		for i, e := range all {
			if i+1 == len(all) || all[i+1].kind != e.kind {
				pieces = append(pieces, e)
			}
		}
		compared := 0
		setLimits(0, packed)
		for _, e := range all {
			compared += e.check(t, w.Rank())
		}
		now := w.Exchanges()
		assert.EqualValues(t, len(all), now.Begun)
		assert.EqualValues(t, len(all), now.Ended)
		t.Logf("rank %d of %d by %s: %d programs, %d numbers", w.Rank(), ranks, w.Library().Version(), len(all), compared)
		// Exchanges in pieces, as of more than 2^30 elements: again with few elements per MPI call, and nothing packed.
		for _, e := range pieces {
			limit := 7_000 // bytes
			if strings.Contains(e.kind, "reduce") {
				limit = 700 // elements
			}
			setLimits(limit, 1)
			e.check(t, w.Rank())
		}
	})
}

func TestCollectivesOfTwo(t *testing.T)   { testCollectives(t, 2) }
func TestCollectivesOfThree(t *testing.T) { testCollectives(t, 3) }
func TestCollectivesOfFour(t *testing.T)  { testCollectives(t, 4) }

// Order by tokens: six calls that depend on each other only by tokens.
func TestTokensKeepTheOrder(t *testing.T) {
	onRanks(t, 2, func(t *testing.T, w *World) {
		const calls, runs = 6, 40
		var text strings.Builder
		shape := pjrt.Shape{DType: pjrt.Float32, Dims: []int{1000}}
		var params, results []string
		for i := range calls {
			params = append(params, fmt.Sprintf("%%x%d: tensor<%v>", i, shape))
			results = append(results, fmt.Sprintf("%%r%d#0", i))
		}
		one := slices.Repeat([]pjrt.Shape{shape}, calls)
		fmt.Fprintf(&text, "module @order {\nfunc.func @main(%s) -> (%s) {\n%%t0 = stablehlo.create_token : !stablehlo.token\n", strings.Join(params, ", "), types(one))
		token := "%t0"
		for i := range calls {
			fmt.Fprintf(&text, "%%r%d:2 = stablehlo.custom_call @lazo.all_reduce(%%x%d, %s) {api_version = 4 : i32, backend_config = {site = %d : i64, op = 0 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}} : (tensor<%v>, !stablehlo.token) -> (tensor<%v>, !stablehlo.token)\n",
				i, i, token, i, shape, shape)
			token = fmt.Sprintf("%%r%d#1", i)
		}
		fmt.Fprintf(&text, "return %s : %s\n}}", strings.Join(results, ", "), types(one))
		e := compile(t, text.String())
		wrong := 0
		for n := range runs {
			var args []pjrt.Array
			for i := range calls {
				x := make([]float32, 1000)
				for k := range x {
					x[k] = float32(100*i + n + w.Rank())
				}
				args = append(args, pjrt.Array{Shape: shape, Data: pjrt.Bytes(x)})
			}
			for i, got := range run(t, e, args...) {
				want := make([]float32, 1000)
				for k := range want {
					want[k] = float32(2*(100*i+n) + 1)
				}
				if !slices.Equal(got, pjrt.Bytes(want)) {
					wrong++
				}
			}
		}
		require.Zero(t, wrong, "wrong sums of %d", calls*runs)
		t.Logf("rank %d: %d sums, %d wrong", w.Rank(), calls*runs, wrong)
	})
}

// Rounding and special numbers: the results are bit-identical on all ranks and follow IEEE 754.
func TestSpecialNumbers(t *testing.T) {
	onRanks(t, 2, func(t *testing.T, w *World) {
		nan, inf, zero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
		mine := [][]float64{{nan, 1, inf, -inf, 0, zero, nan}, {2, nan, 5, 5, zero, 0, nan}}
		for i, want := range [][]float64{{nan, nan, 5, -inf, zero, zero, nan}, {nan, nan, inf, 5, 0, 0, nan}} {
			op := []int{minimum, maximum}[i]
			for _, d := range []pjrt.DType{pjrt.Float32, pjrt.Float64, pjrt.Float16, pjrt.BFloat16} {
				shape := []pjrt.Shape{{DType: d, Dims: []int{7}}}
				e := exchange{"all_reduce", fmt.Sprintf("%s, op = %d : i64", grouped([][]int{{0, 1}}), op), shape, shape, false}
				got := run(t, compile(t, e.text()), pjrt.Array{Shape: shape[0], Data: floats(d, mine[w.Rank()])})[0]
				assert.Equal(t, floats(d, want), got, "%v, operation %d, rank %d", d, op, w.Rank())
			}
		}
		// Subnormals are treated as in the program's own addition.
		for i, small := range []float64{0x1p-130, 0x1p-1030} {
			d := []pjrt.DType{pjrt.Float32, pjrt.Float64}[i]
			all := [][]float64{{small, small, -small, 0x1p-126}, {small, 1, -small, -0x1.8p-126}}
			shape := pjrt.Shape{DType: d, Dims: []int{4}}
			added := run(t, compile(t, fmt.Sprintf("module @add {\nfunc.func @main(%%x: tensor<%[1]v>, %%y: tensor<%[1]v>) -> tensor<%[1]v> {\n"+
				"%%z = stablehlo.add %%x, %%y : tensor<%[1]v>\nreturn %%z : tensor<%[1]v>\n}}", shape)),
				pjrt.Array{Shape: shape, Data: floats(d, all[0])}, pjrt.Array{Shape: shape, Data: floats(d, all[1])})[0]
			e := exchange{"all_reduce", grouped([][]int{{0, 1}}) + ", op = 0 : i64", []pjrt.Shape{shape}, []pjrt.Shape{shape}, false}
			assert.Equal(t, added, run(t, compile(t, e.text()), pjrt.Array{Shape: shape, Data: floats(d, all[w.Rank()])})[0], "%v, rank %d", d, w.Rank())
		}
		// All 16-bit numbers plus 0, and plus numbers for which most sums are rounded.
		for _, d := range []pjrt.DType{pjrt.Float16, pjrt.BFloat16} {
			const n = 1 << 16
			shape := []pjrt.Shape{{DType: d, Dims: []int{n}}}
			e := compile(t, exchange{"all_reduce", grouped([][]int{{0, 1}}) + ", op = 0 : i64", shape, shape, false}.text())
			half := halves[d]
			flushed := func(v float64) float64 { // as in XLA, for 32 bits
				if math.Abs(v) < 0x1p-126 {
					return math.Copysign(0, v)
				}
				return v
			}
			for _, stride := range []int{0, 1, 257, 4099} {
				x, wrong := make([]byte, 0, 2*n), 0
				for i := range n {
					x = binary.LittleEndian.AppendUint16(x, []uint16{uint16(i), uint16(i * stride)}[w.Rank()])
				}
				got := run(t, e, pjrt.Array{Shape: shape[0], Data: x})[0]
				for i := range n {
					a, b := uint16(i), uint16(i*stride)
					if want, got := half.round(flushed(flushed(half.number(a))+flushed(half.number(b)))), binary.LittleEndian.Uint16(got[2*i:]); got != want {
						if wrong++; wrong < 5 {
							t.Errorf("%v: %#x + %#x: got %#x, want %#x", d, a, b, got, want)
						}
					}
				}
				assert.Zero(t, wrong, "%v, stride %d, rank %d", d, stride, w.Rank())
			}
		}
	})
}

// half is a 16-bit float with fraction bits.
type half struct{ fraction, bias int }

var halves = map[pjrt.DType]half{pjrt.Float16: {10, 15}, pjrt.BFloat16: {7, 127}}

// number decodes bits.
func (h half) number(bits uint16) float64 {
	sign, exponent, fraction := 1.0, int(bits&0x7fff)>>h.fraction, int(bits)&(1<<h.fraction-1)
	if bits&0x8000 != 0 {
		sign = -1
	}
	switch {
	case exponent == 1<<(15-h.fraction)-1 && fraction != 0:
		return math.NaN()
	case exponent == 1<<(15-h.fraction)-1:
		return sign * math.Inf(1)
	case exponent == 0:
		return sign * math.Ldexp(float64(fraction), 1-h.bias-h.fraction)
	}
	return sign * math.Ldexp(float64(fraction+1<<h.fraction), exponent-h.bias-h.fraction)
}

// round returns the nearest number, ties to even, and the operations' NaN. It rounds to 32 bits first, as the
// operations do.
func (h half) round(v float64) uint16 {
	v = float64(float32(v))
	infinite := uint16(1<<(15-h.fraction)-1) << h.fraction
	sign := uint16(0)
	if math.Signbit(v) {
		sign = 0x8000
	}
	switch v = math.Abs(v); {
	case v != v:
		return infinite | 1<<(h.fraction-1)
	case math.IsInf(v, 0):
		return sign | infinite
	}
	above := uint16(sort.Search(int(infinite), func(bits int) bool { return h.number(uint16(bits)) >= v }))
	if above == 0 || h.number(above) == v {
		return sign | above
	}
	low, high := h.number(above-1), h.number(above)
	if above == infinite { // where the next number would be
		high = 2*low - h.number(above-2)
	}
	if v-low < high-v || v-low == high-v && above%2 == 1 {
		above--
	}
	return sign | above
}

// floats encodes numbers in a dtype, with the NaN that all ranks agree on.
func floats(d pjrt.DType, values []float64) (data []byte) {
	for _, v := range values {
		switch d {
		case pjrt.Float32:
			bits := math.Float32bits(float32(v))
			if v != v {
				bits = 0x7fc00000
			}
			data = binary.LittleEndian.AppendUint32(data, bits)
		case pjrt.Float64:
			bits := math.Float64bits(v)
			if v != v {
				bits = 0x7ff8000000000000
			}
			data = binary.LittleEndian.AppendUint64(data, bits)
		default:
			data = binary.LittleEndian.AppendUint16(data, halves[d].round(v))
		}
	}
	return data
}
