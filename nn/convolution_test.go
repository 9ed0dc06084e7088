package nn_test

import (
	"testing"

	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
)

// An impossible convolution is an error with the layer's scope, the given and the expected value.
func TestConvolutions_wrong(t *testing.T) {
	for _, row := range []struct {
		layer interface {
			Apply(*model.Scope, *node) *node
		}
		dims []int
		want string
	}{
		{nn.Conv{Channels: 2, Window: []int{5}, Valid: true}, []int{1, 4, 2}, "nn: Conv in /here: windows [5] with the dilation [1] do not fit the input (Float32)[1, 4, 2]: expected windows that reach over at most 4 places"},
		{nn.SeparableConv{Channels: 2, Window: []int{2}, Dilation: []int{4}, Valid: true}, []int{1, 4, 2}, "SeparableConv in /here: windows [2] with the dilation [4] do not fit"},
		{nn.Conv{Channels: 2, Window: []int{3}, Causal: true}, []int{1, 4, 4, 2}, "Conv in /here: Causal puts zeros in front of one spatial axis"},
		{nn.Conv{Channels: 2, Window: []int{3}, Causal: true, Valid: true}, []int{1, 4, 2}, "Conv in /here: Causal puts zeros"},
		{nn.Conv{Channels: 3, Window: []int{3}, Groups: 2}, []int{1, 4, 2}, "2 groups for 2 inputs and 3 channels"},
		{nn.Conv{Channels: 2, Window: []int{3}, Groups: -1}, []int{1, 4, 2}, "Groups is -1"},
		{nn.Conv{Channels: 2, Window: []int{3}, Dilation: []int{1 << 62}, Causal: true}, []int{1, 4, 2}, "expected strides and windows of at most 2147483648 places"},
		{nn.ConvTranspose{Channels: 2, Window: []int{3}, Dilation: []int{1 << 62}}, []int{1, 4, 2}, "expected strides and windows of at most 2147483648 places"},
		{nn.ConvTranspose{Channels: 2, Window: []int{3}, Strides: []int{1 << 40}}, []int{1, 4, 2}, "expected strides and windows of at most 2147483648 places"},
		{nn.DepthwiseConv{Window: []int{3, 3}}, []int{1, 4, 2}, "DepthwiseConv in /here: Window is [3 3], expected one number, or one for each of 1 spatial axes"},
		{nn.DepthwiseConv{Window: []int{3}, Multiplier: -1}, []int{1, 4, 2}, "Multiplier is -1"},
		{nn.DepthwiseConv{Window: []int{3}, Causal: true}, []int{1, 4, 4, 2}, "DepthwiseConv in /here: Causal puts zeros in front of one spatial axis"},
		{nn.SeparableConv{Channels: 2, Window: []int{3}, Causal: true, Valid: true}, []int{1, 4, 2}, "SeparableConv in /here: Causal puts zeros"},
		{nn.LastStep{}, []int{3}, "LastStep in /here: the input is (Float32)[3], expected [batch, places, …]"},
		{nn.DepthwiseConv{}, []int{1, 4, 2}, "Window is [], expected one number"},
		{nn.ConvTranspose{Channels: 1, Window: []int{3}, Strides: []int{2}, OutputPadding: []int{2}}, []int{1, 4, 2}, "ConvTranspose in /here: OutputPadding is [2], expected numbers below the strides, which are [2]"},
		{nn.ConvTranspose{Channels: 1, Window: []int{3}, OutputPadding: []int{-1}}, []int{1, 4, 2}, "OutputPadding is -1, expected at least 0"},
		{nn.ConvTranspose{Channels: 1, Window: []int{3}}, []int{4, 2}, "the input is (Float32)[4, 2], expected floating-point numbers [batch, spatial…, n]"},
	} {
		store := model.NewStore()
		exec, err := model.NewExec(plugintest.Go(t), store, func(s *model.Scope, x *node) *node { return row.layer.Apply(s.In("here"), x) })
		require.NoError(t, err)
		_, err = exec.Call(normal(1, row.dims...))
		require.ErrorContains(t, err, row.want)
	}
}
