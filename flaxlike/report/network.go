package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/metrics/plots"
)

// Network returns the diagram of a model's inputs, layers and outputs with shapes and sizes. Inner layers are parts of
// their block. An unbuilt model ([flaxlike.Model.Init]) is an error in the figure.
func Network(model *flaxlike.Model) *plots.Figure {
	s := model.Summary()
	var blocks []plots.Block
	at := make([]int, len(s.Layers))
	inputs := map[string]int{}
	for _, a := range s.Arrows {
		if _, known := inputs[a.Input]; a.From < 0 && !known {
			inputs[a.Input] = len(blocks)
			blocks = append(blocks, plots.Block{Name: a.Input, Kind: "input", Shape: shown(s.Inputs[a.Input])})
		}
	}
	var open []string
	for i, l := range s.Layers {
		for len(open) > 0 && !strings.HasPrefix(l.Name, open[len(open)-1]+"/") {
			open = open[:len(open)-1]
		}
		b := plots.Block{Name: l.Name, Kind: l.Kind, Size: l.Size - l.Fixed, Fixed: l.Fixed}
		if l.Kind != "variables" {
			b.Shape = shown(l.Output)
		}
		into := &blocks
		for range open {
			last := &(*into)[len(*into)-1]
			into = &last.Parts
		}
		*into = append(*into, b)
		at[i] = len(blocks) - 1
		if len(open) > 0 {
			at[i] = -1 - at[i]
		} else if l.Kind == "output" {
			continue
		}
		if l.Name != "" && l.Kind != "variables" {
			open = append(open, l.Name)
		}
	}
	for _, a := range s.Arrows {
		to := at[a.To]
		if to < 0 {
			continue // the enclosing layer has the arrow
		}
		from := inputs[a.Input]
		if a.From >= 0 {
			if from = at[a.From]; from < 0 {
				from = -1 - from
			}
		}
		if from != to && !slices.Contains(blocks[to].From, from) {
			blocks[to].From = append(blocks[to].From, from)
		}
	}
	return plots.Network(blocks...)
}

func shown(s shapes.Shape) string { return fmt.Sprint(s.DType, " ", s.Dimensions) }
