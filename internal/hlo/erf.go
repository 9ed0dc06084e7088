package hlo

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

// Plain writes StableHLO alone, for readers other than XLA, and returns b: Erf is in another dialect (CHLO).
func (b *Builder) Plain() *Builder {
	b.plain = true
	return b
}

func (f *Function) Erf(x compute.Value) (compute.Value, error) {
	if !f.b.plain {
		return f.unary(compute.OpTypeErf, x)
	}
	return f.each(compute.OpTypeErf, float, x, func(x *value) (*value, error) {
		switch dtype := x.Shape().DType; dtype {
		case dtypes.Float64:
			return f.erf64(x)
		case dtypes.Float32:
			return f.erf32(x)
		default:
			c := &chain{}
			return c.convert(c.one(f.erf32, c.convert(x, dtypes.Float32)), dtype), c.err
		}
	})
}

// Coefficients of polynomials, the highest power first.
var (
	// Single precision: erf(x) = x·P(x²)/Q(x²) up to erfLast, then 1, with XLA's and Eigen's coefficients.
	erfTop    = []float64{0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145, 1.128379143519084}
	erfBottom = []float64{
		-1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667, 0.11098505178285362, 0.49746925110067538, 1,
	}
	erfLast = 3.832506856900711

	// Double precision: x·T(x²)/U(x²) up to 1, then 1-exp(-x²)·P(x)/Q(x), with Moshier's coefficients (Cephes).
	erfT = []float64{9.60497373987051638749, 90.0260197203842689217, 2232.00534594684319226, 7003.32514112805075473, 55592.3013010394962768}
	erfU = []float64{1, 33.5617141647503099647, 521.357949780152679795, 4594.32382970980127987, 22629.0000613890934246, 49267.3942608635921086}
	erfP = []float64{
		2.46196981473530512524e-10, 0.564189564831068821977, 7.46321056442269912687, 48.6371970985681366614, 196.520832956077098242,
		526.445194995477358631, 934.528527171957607540, 1027.55188689515710272, 557.535335369399327526,
	}
	erfQ = []float64{
		1, 13.2281951154744992508, 86.7072140885989742329, 354.937778887819891062, 975.708501743205489753, 1823.90916687909736289,
		2246.33760818710981792, 1656.66309194161350182, 557.535340817727675546,
	}
	erfEnd = 6.0
)

func (f *Function) erf32(x *value) (*value, error) {
	c := &chain{}
	low, high := f.like(c, x, -erfLast), f.like(c, x, erfLast)
	x = c.do(func() (*value, error) { return stablehlo.Clamp(low, x, high) })
	square := c.two(stablehlo.Multiply, x, x)
	top := c.two(stablehlo.Multiply, x, f.polynomial(c, square, erfTop))
	y := c.two(stablehlo.Divide, top, f.polynomial(c, square, erfBottom))
	low, high = f.like(c, x, -1), f.like(c, x, 1) // rounding can exceed 1
	return c.do(func() (*value, error) { return stablehlo.Clamp(low, y, high) }), c.err
}

func (f *Function) erf64(x *value) (*value, error) {
	c := &chain{}
	one := f.like(c, x, 1)
	square := c.two(stablehlo.Multiply, x, x)
	inner := c.two(stablehlo.Divide, c.two(stablehlo.Multiply, x, f.polynomial(c, square, erfT)), f.polynomial(c, square, erfU))
	distance := c.two(stablehlo.Minimum, c.one(stablehlo.Abs, x), f.like(c, x, erfEnd))
	falling := c.one(stablehlo.Exponential, c.one(stablehlo.Negate, c.two(stablehlo.Multiply, distance, distance)))
	rest := c.two(stablehlo.Divide, c.two(stablehlo.Multiply, falling, f.polynomial(c, distance, erfP)), f.polynomial(c, distance, erfQ))
	outer := c.two(stablehlo.Multiply, c.one(stablehlo.Sign, x), c.two(stablehlo.Subtract, one, rest))
	return c.choose(c.compare(distance, one, types.CompareLE), inner, outer), c.err
}

func (f *Function) polynomial(c *chain, x *value, coefficients []float64) *value {
	sum := f.like(c, x, coefficients[0])
	for _, n := range coefficients[1:] {
		sum = c.two(stablehlo.Add, c.two(stablehlo.Multiply, sum, x), f.like(c, x, n))
	}
	return sum
}
