package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/go-xla/pkg/stablehlo"
	"github.com/gomlx/gomlx/backends"
)

// features checks the operands of a normalisation: all of one float type, and one number for each feature in all but
// those that have x's shape.
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

// BatchNormForInference is (operand - mean) / sqrt(variance + epsilon) * scale + offset, with one mean, variance, scale
// and offset for each feature.
func (b *Builder) BatchNormForInference(operand, scale, offset, mean, variance backends.Op, epsilon float32, featureAxis int) (backends.Op, error) {
	return b.emitOne(backends.OpTypeBatchNormForInference, []backends.Op{operand, scale, offset, mean, variance}, func(v []*value) (*value, error) {
		if err := features(featureAxis, v[0], v[1:]); err != nil {
			return nil, err
		}
		return stablehlo.BatchNormInference(v[0], v[1], v[2], v[3], v[4], epsilon, featureAxis)
	})
}

// BatchNormForTraining takes the mean and the variance from the batch, and returns them too. The variance is the sum of
// squares divided by the number of elements.
func (b *Builder) BatchNormForTraining(operand, scale, offset backends.Op, epsilon float32, featureAxis int) (normalized, batchMean, batchVariance backends.Op, err error) {
	return b.emitThree(backends.OpTypeBatchNormForTraining, []backends.Op{operand, scale, offset}, func(v []*value) (x, y, z *value, err error) {
		if err := features(featureAxis, v[0], v[1:]); err != nil {
			return nil, nil, nil, err
		}
		return stablehlo.BatchNormTraining(v[0], v[1], v[2], epsilon, featureAxis)
	})
}

// BatchNormGradient is the gradient of [Builder.BatchNormForTraining] for its operands.
func (b *Builder) BatchNormGradient(operand, scale, mean, variance, gradOutput backends.Op, epsilon float32, featureAxis int) (gradOperand, gradScale, gradOffset backends.Op, err error) {
	return b.emitThree(backends.OpTypeBatchNormGradient, []backends.Op{operand, scale, mean, variance, gradOutput}, func(v []*value) (x, y, z *value, err error) {
		if err := features(featureAxis, v[0], v[1:4], v[4]); err != nil {
			return nil, nil, nil, err
		}
		return stablehlo.BatchNormGradient(v[0], v[1], v[2], v[3], v[4], epsilon, featureAxis)
	})
}

func (b *Builder) emitThree(kind backends.OpType, operands []backends.Op, lower func(v []*value) (x, y, z *value, err error)) (x, y, z backends.Op, err error) {
	ops, err := b.emit(kind, operands, func(v []*value) ([]*value, error) {
		x, y, z, err := lower(v)
		return []*value{x, y, z}, err
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return ops[0], ops[1], ops[2], nil
}
