package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/stablehlo"
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
func (f *Function) BatchNormForInference(operand, scale, offset, mean, variance compute.Value, epsilon float32, featureAxis int) (compute.Value, error) {
	return f.emitOne(compute.OpTypeBatchNormForInference, []compute.Value{operand, scale, offset, mean, variance}, func(v []*value) (*value, error) {
		if err := features(featureAxis, v[0], v[1:]); err != nil {
			return nil, err
		}
		return stablehlo.BatchNormInference(v[0], v[1], v[2], v[3], v[4], epsilon, featureAxis)
	})
}

// BatchNormForTraining takes the mean and the variance from the batch, and returns them too. The variance is the sum of
// squares divided by the number of elements.
func (f *Function) BatchNormForTraining(operand, scale, offset compute.Value, epsilon float32, featureAxis int) (normalized, batchMean, batchVariance compute.Value, err error) {
	return f.emitThree(compute.OpTypeBatchNormForTraining, []compute.Value{operand, scale, offset}, func(v []*value) (x, y, z *value, err error) {
		if err := features(featureAxis, v[0], v[1:]); err != nil {
			return nil, nil, nil, err
		}
		return stablehlo.BatchNormTraining(v[0], v[1], v[2], epsilon, featureAxis)
	})
}

// BatchNormGradient is the gradient of [Function.BatchNormForTraining] for its operands.
func (f *Function) BatchNormGradient(operand, scale, mean, variance, gradOutput compute.Value, epsilon float32, featureAxis int) (gradOperand, gradScale, gradOffset compute.Value, err error) {
	return f.emitThree(compute.OpTypeBatchNormGradient, []compute.Value{operand, scale, mean, variance, gradOutput}, func(v []*value) (x, y, z *value, err error) {
		if err := features(featureAxis, v[0], v[1:4], v[4]); err != nil {
			return nil, nil, nil, err
		}
		return stablehlo.BatchNormGradient(v[0], v[1], v[2], v[3], v[4], epsilon, featureAxis)
	})
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
