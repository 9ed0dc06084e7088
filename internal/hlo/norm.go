package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/stablehlo"
)

func features(axis int, x *value, perFeature []*value, likeX ...*value) error {
	if err := float.need(x); err != nil {
		return err
	}
	if err := sameType(slices.Concat([]*value{x}, perFeature, likeX)...); err != nil {
		return err
	}
	if err := checkAxes("feature axis", []int{axis}, x.Shape().Rank()); err != nil {
		return err
	}
	for _, v := range perFeature {
		if want := []int{dims(x)[axis]}; !slices.Equal(dims(v), want) {
			return fmt.Errorf("an operand of dimensions %v, expected one number for each feature, %v", dims(v), want)
		}
	}
	for _, v := range likeX {
		if !slices.Equal(dims(v), dims(x)) {
			return fmt.Errorf("an operand of dimensions %v, expected %v", dims(v), dims(x))
		}
	}
	return nil
}

func (f *Function) BatchNormForInference(operand, scale, offset, mean, variance compute.Value, epsilon float32, featureAxis int) (compute.Value, error) {
	return f.emitOne(compute.OpTypeBatchNormForInference, []compute.Value{operand, scale, offset, mean, variance}, func(v []*value) (*value, error) {
		if err := features(featureAxis, v[0], v[1:]); err != nil {
			return nil, err
		}
		return stablehlo.BatchNormInference(v[0], v[1], v[2], v[3], v[4], epsilon, featureAxis)
	})
}

// BatchNormForTraining takes the mean squared deviation as variance: XLA's own form, a difference of squares, loses
// digits.
func (f *Function) BatchNormForTraining(operand, scale, offset compute.Value, epsilon float32, featureAxis int) (normalized, batchMean, batchVariance compute.Value, err error) {
	return f.emitThree(compute.OpTypeBatchNormForTraining, []compute.Value{operand, scale, offset}, func(v []*value) (x, y, z *value, err error) {
		if err := features(featureAxis, v[0], v[1:]); err != nil {
			return nil, nil, nil, err
		}
		return f.normOver(v[0], v[1], v[2], epsilon, featureAxis)
	})
}

func (f *Function) BatchNormGradient(operand, scale, mean, variance, gradOutput compute.Value, epsilon float32, featureAxis int) (gradOperand, gradScale, gradOffset compute.Value, err error) {
	return f.emitThree(compute.OpTypeBatchNormGradient, []compute.Value{operand, scale, mean, variance, gradOutput}, func(v []*value) (x, y, z *value, err error) {
		if err := features(featureAxis, v[0], v[1:4], v[4]); err != nil {
			return nil, nil, nil, err
		}
		if len(f.b.meshes) > 0 {
			return f.normGradientOver(v[0], v[1], v[2], v[3], v[4], epsilon, featureAxis)
		}
		return stablehlo.BatchNormGradient(v[0], v[1], v[2], v[3], v[4], epsilon, featureAxis)
	})
}

// computed in float32 or wider
type perFeature struct {
	chain
	f    *Function
	x    *value
	axis int
	n    float64
}

func (f *Function) perFeature(x *value, axis int) *perFeature {
	p := &perFeature{f: f, axis: axis}
	p.x = p.wide(x)
	p.n = float64(x.Shape().Size() / max(1, dims(x)[axis]))
	return p
}

func (p *perFeature) wide(v *value) *value {
	if v.Shape().DType.Bits() < 32 {
		return p.convert(v, dtypes.Float32)
	}
	return v
}

func (p *perFeature) spread(of *value) *value {
	return p.do(func() (*value, error) { return stablehlo.BroadcastInDim(of, p.x.Shape(), []int{p.axis}) })
}

func (p *perFeature) sum(v *value) *value {
	return p.do(func() (*value, error) {
		neutral, join, err := p.f.function(sums, v)
		if err != nil {
			return nil, err
		}
		var over []int
		for axis := range v.Shape().Rank() {
			if axis != p.axis {
				over = append(over, axis)
			}
		}
		if len(over) == 0 {
			return v, nil
		}
		return p.f.reduceOver(v, neutral, join, over)
	})
}

func (p *perFeature) times(v *value, number float64) *value {
	return p.two(stablehlo.Multiply, v, p.f.like(&p.chain, v, number))
}

func (p *perFeature) deviation(variance *value, epsilon float32) *value {
	return p.one(stablehlo.Sqrt, p.two(stablehlo.Add, variance, p.f.like(&p.chain, variance, float64(epsilon))))
}

func (f *Function) normOver(x, scale, offset *value, epsilon float32, axis int) (normalized, mean, variance *value, err error) {
	p := f.perFeature(x, axis)
	mean = p.times(p.sum(p.x), 1/p.n)
	off := p.two(stablehlo.Subtract, p.x, p.spread(mean))
	variance = p.times(p.sum(p.two(stablehlo.Multiply, off, off)), 1/p.n)
	factor := p.two(stablehlo.Divide, p.wide(scale), p.deviation(variance, epsilon))
	normalized = p.two(stablehlo.Add, p.two(stablehlo.Multiply, off, p.spread(factor)), p.spread(p.wide(offset)))
	t := x.Shape().DType
	return p.convert(normalized, t), p.convert(mean, t), p.convert(variance, t), p.err
}

// XLA does not partition [Function.BatchNormGradient].
func (f *Function) normGradientOver(x, scale, mean, variance, v *value, epsilon float32, axis int) (ofX, ofScale, ofOffset *value, err error) {
	p := f.perFeature(x, axis)
	v = p.wide(v)
	deviation := p.deviation(p.wide(variance), epsilon)
	off := p.two(stablehlo.Divide, p.two(stablehlo.Subtract, p.x, p.spread(p.wide(mean))), p.spread(deviation))
	ofOffset, ofScale = p.sum(v), p.sum(p.two(stablehlo.Multiply, v, off))
	ofX = p.two(stablehlo.Subtract, v, p.spread(p.times(ofOffset, 1/p.n)))
	ofX = p.two(stablehlo.Subtract, ofX, p.two(stablehlo.Multiply, off, p.spread(p.times(ofScale, 1/p.n))))
	ofX = p.two(stablehlo.Multiply, ofX, p.spread(p.two(stablehlo.Divide, p.wide(scale), deviation)))
	t := x.Shape().DType
	return p.convert(ofX, t), p.convert(ofScale, t), p.convert(ofOffset, t), p.err
}

func (f *Function) emitThree(kind compute.OpType, operands []compute.Value, lower func(v []*value) (x, y, z *value, err error)) (x, y, z compute.Value, err error) {
	ops, err := f.emit(kind, operands, func(v []*value) ([]*value, error) {
		x, y, z, err := lower(v)
		return []*value{x, y, z}, err
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return ops[0], ops[1], ops[2], nil
}
