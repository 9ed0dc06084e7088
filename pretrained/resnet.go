package pretrained

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

// convNorm's running averages are part of the state and not trained.
type convNorm struct {
	file, own               string
	in, out, window, stride int
}

func (l convNorm) modules() []module {
	return []module{
		{l.file + ".convolution", l.own + "/convolution", conv(l.in, l.out, l.window, l.window)[:1]},
		{l.file + ".normalization", l.own + "/norm/batch_normalization", batchNorm(l.out)},
	}
}

func (l convNorm) apply(s *model.Scope, x *graph.Node) *graph.Node {
	s = s.In("%s", l.own)
	x = nn.Conv{Channels: l.out, Window: []int{l.window}, Strides: []int{l.stride}, Valid: true, Padding: []int{l.window / 2}, NoBias: true, Kernel: notGiven}.
		Apply(s.In("convolution"), x)
	return nn.BatchNorm{Momentum: 0.9, Epsilon: 1e-5, AsTorch: true}.Apply(s.In("norm"), x)
}

type block struct {
	layers   []convNorm
	shortcut *convNorm // nil for the input
}

func blocksOf(c *config, in int) (all []block, width int) {
	widths, depths := c.counts("hidden_sizes", 1<<20, 256, 512, 1024, 2048), c.counts("depths", 1000, 3, 4, 6, 3)
	bottleneck, first := c.text("layer_type", "bottleneck") == "bottleneck", c.flag("downsample_in_bottleneck", false)
	c.only("layer_type", `"bottleneck"`, `"basic"`)
	if len(widths) != len(depths) || len(widths) > 100 {
		c.fail("depths", "a number for each of the hidden_sizes, at most 100")
		return nil, in
	}
	for stage, out := range widths {
		for layer := range depths[stage] {
			of, own := fmt.Sprintf("encoder.stages.%d.layers.%d.", stage, layer), fmt.Sprintf("stage_%d_layer_%d_", stage, layer)
			at := func(i, in, out, window, stride int) convNorm {
				return convNorm{fmt.Sprintf("%slayer.%d", of, i), fmt.Sprintf("%s%d", own, i), in, out, window, stride}
			}
			stride, b := 1, block{}
			if layer == 0 && (stage > 0 || c.flag("downsample_in_first_stage", false)) {
				stride = 2
			}
			if inner := out / 4; !bottleneck {
				b.layers = []convNorm{at(0, in, out, 3, stride), at(1, out, out, 3, 1)}
			} else {
				if inner < 1 {
					c.fail("hidden_sizes", "at least 4 for each stage of bottlenecks")
				}
				begin, then := 1, stride
				if first {
					begin, then = stride, 1
				}
				b.layers = []convNorm{at(0, in, inner, 1, begin), at(1, inner, inner, 3, then), at(2, inner, out, 1, 1)}
			}
			if in != out || stride != 1 {
				b.shortcut = &convNorm{of + "shortcut", own + "shortcut", in, out, 1, stride}
			}
			all, in = append(all, b), out
		}
	}
	return all, in
}

func resNet(c *config) *family {
	c.encoder()
	channels, stemWidth, activation := c.size("num_channels", 3), c.size("embedding_size", 64), c.activation("hidden_act", "relu")
	stem := convNorm{"embedder.embedder", "stem", channels, stemWidth, 7, 2}
	blocks, width := blocksOf(c, stemWidth)
	images := c.pixels(0, 0, channels)
	f := &family{class: "ResNet", prefix: "resnet.", of: "images", dtype: c.dtype, body: stem.modules()}
	for _, b := range blocks {
		for _, l := range b.layers {
			f.body = append(f.body, l.modules()...)
		}
		if b.shortcut != nil {
			f.body = append(f.body, b.shortcut.modules()...)
		}
	}
	f.build = func(s *model.Scope, in inputs) *graph.Node {
		x := activation.Apply(s, stem.apply(s, images.of(in)))
		around := graph.PadAxis{Start: 1, End: 1} // GoMLX's Go backend lacks the gradient of MaxPool's own padding
		x = graph.Pad(x, graph.Infinity(x.Graph(), x.DType(), -1), graph.PadAxis{}, around, around, graph.PadAxis{})
		x = graph.MaxPool(x).Window(3).Strides(2).Done()
		for _, b := range blocks {
			x = c.layer(x, func(x *graph.Node) *graph.Node {
				y := x
				for i, l := range b.layers {
					if y = l.apply(s, y); i < len(b.layers)-1 {
						y = nn.Relu(y) // also with another hidden_act
					}
				}
				if b.shortcut != nil {
					x = b.shortcut.apply(s, x)
				}
				return activation.Apply(s, graph.Add(x, y))
			})
		}
		return x
	}
	f.pool = func(s *model.Scope, hidden *graph.Node) *graph.Node { return nn.GlobalMeanPool{}.Apply(s, hidden) }
	f.heads = map[task]head{classification: head{modules: []module{{"classifier.1", "classifier", linear(width, c.classes)}},
		build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
			return logits(nn.Dense{Units: c.classes}.Apply(s.In("classifier"), f.pool(s, hidden)))
		}}.of("ResNet" + string(imageClasses))}
	return f
}
