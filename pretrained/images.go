package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/regular"
)

const (
	imagesFile  = "preprocessor_config.json"
	pixelsInput = "pixel_values"
)

func readImages(folder string) (fields map[string]json.RawMessage, err error) {
	text, err := regular.Read(filepath.Join(folder, imagesFile), mostText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		fields, err = object(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", imagesFile, err)
	}
	return fields, nil
}

// pixels of uint8 are prepared as by the folder's preprocessor_config.json.
type pixels struct {
	height, width, channels int // 0: all heights and widths
	dtype                   dtypes.DType
	rescale                 float64
	mean, deviation         []float64
	prepared                [2]int // height and width of uint8, 0: all
	err                     error  // of uint8
}

// pixels reads preprocessor_config.json. Its errors are those of images of uint8.
func (c *config) pixels(height, width, channels int) pixels {
	p := pixels{height: height, width: width, channels: channels, dtype: c.dtype, rescale: 1}
	if c.images == nil {
		p.err = fmt.Errorf("the folder has no %s", imagesFile)
		return p
	}
	in := &config{fields: c.images, file: imagesFile}
	in.only("do_flip_channel_order", "false")
	in.only("do_pad", "false")
	if in.flag("do_rescale", true) {
		in.only("offset", "false") // of rescaled numbers
		p.rescale = in.positive("rescale_factor", 1./255)
	}
	if in.flag("do_normalize", true) {
		p.mean, p.deviation = in.perChannel("image_mean", channels), in.perChannel("image_std", channels)
		if slices.ContainsFunc(p.mean, func(x float64) bool { return math.Abs(x) > 1e9 }) {
			in.fail("image_mean", "numbers from -1e9 to 1e9")
		}
		if slices.ContainsFunc(p.deviation, func(x float64) bool { return x < 1e-9 || x > 1e9 }) {
			in.fail("image_std", "numbers from 1e-9 to 1e9")
		}
	}
	switch size := in.sizes("size"); {
	case in.flag("do_center_crop", in.has("crop_size")):
		crop := in.sizes("crop_size")
		p.prepared = [2]int{crop["height"], crop["width"]}
	case !in.flag("do_resize", true):
	case in.has("crop_pct"):
		p.prepared = [2]int{size["shortest_edge"], size["shortest_edge"]} // cut from a larger image
	default:
		p.prepared = [2]int{size["height"], size["width"]}
	}
	p.err = in.err
	return p
}

func (c *config) perChannel(name string, channels int) (list []float64) {
	if c.decode(name, &list) != nil || len(list) != channels {
		c.fail(name, "a number for each of %d channels", channels)
	}
	return list
}

func (c *config) sizes(name string) map[string]int {
	var all map[string]int
	if !c.has(name) {
		return nil
	}
	if c.decode(name, &all) == nil {
		for edge, n := range all {
			if !slices.Contains([]string{"height", "width", "shortest_edge", "longest_edge"}, edge) || n < 1 || n > mostSize {
				c.fail(name, "numbers from 1 to %d as height, width, shortest_edge and longest_edge", mostSize)
			}
		}
		return all
	}
	n := c.size(name, 0)
	return map[string]int{"height": n, "width": n, "shortest_edge": n}
}

func (p pixels) of(in inputs) *graph.Node {
	x := in(pixelsInput)
	fail := func(format string, values ...any) {
		panic(fmt.Errorf("pretrained: the input %q is %s, %w", pixelsInput, x.Shape(), fmt.Errorf(format, values...)))
	}
	size := [2]int{p.height, p.width}
	raw := !x.DType().IsFloat()
	if raw && p.height == 0 && p.err == nil {
		size = p.prepared
	}
	dims := x.Shape().Dimensions
	for i, n := range size {
		if x.Rank() != 4 || n > 0 && dims[1+i] != n || dims[3] != p.channels {
			fail("expected [batch, height, width, channels] with the height %d, the width %d (0 for all) and %d channels", size[0], size[1], p.channels)
		}
	}
	if !raw {
		return graph.ConvertDType(x, p.dtype)
	}
	switch {
	case x.DType() != dtypes.Uint8:
		fail("expected uint8, or floating-point numbers as those of transformers' image processor")
	case p.err != nil:
		fail("expected floating-point numbers as those of transformers' image processor: images of uint8 cannot be prepared: %w", p.err)
	case p.height > 0 && p.prepared != [2]int{} && p.prepared != size:
		fail("but %s has images of %d by %d", imagesFile, p.prepared[0], p.prepared[1])
	}
	y := graph.MulScalar(graph.ConvertDType(x, dtypes.Float32), p.rescale)
	if p.mean != nil {
		of := func(list []float64) *graph.Node {
			return graph.ExpandLeftToRank(graph.ConvertDType(graph.Const(x.Graph(), list), dtypes.Float32), 4)
		}
		y = graph.Div(graph.Sub(y, of(p.mean)), of(p.deviation))
	}
	return graph.ConvertDType(y, p.dtype)
}
