package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/metrics/plots"
)

const (
	gridSide   = 8  // at most, along an image's side
	mostWords  = 64 // of a text
	wordsShown = 8
	leastWords = 3 // of a field of texts, not of names
)

// effects are how far the number of an example's answer falls when a part of a field is hidden. hide changes the rows
// after the first, one part each.
func (a *answers) effects(ctx context.Context, example, parts int, name string, hide func(of data.Array) error) ([]float64, error) {
	rows := make([]int, parts+1)
	for k := range rows {
		rows[k] = example
	}
	set, err := a.only(rows)
	if err != nil {
		return nil, err
	}
	fields := slices.Clone(set.Fields())
	k := slices.IndexFunc(fields, func(f data.Field) bool { return f.Name == name })
	if k < 0 {
		return nil, fmt.Errorf("the model's preparation makes the field %q", name)
	}
	fields[k].Array = fields[k].Array.Gather(identity(len(rows)))
	if err := hide(fields[k].Array); err != nil {
		return nil, err
	}
	if set, err = data.New(fields...); err != nil {
		return nil, err
	}
	p, err := a.model.Predict(ctx, set)
	if err != nil {
		return nil, err
	}
	values, err := a.number(p, example)
	if err != nil {
		return nil, err
	}
	falls := make([]float64, parts)
	for k := range falls {
		falls[k] = values[0] - values[k+1]
	}
	return falls, nil
}

// drawSaliency tints the cells of images by their effects.
func (a *answers) drawSaliency(ctx context.Context, name string, images []plots.Sample, worst []loss, d *draft) error {
	var tinted []plots.Sample
	for k, l := range worst {
		bounds := images[k].Image.Bounds()
		down, across := min(gridSide, bounds.Dy()), min(gridSide, bounds.Dx())
		falls, err := a.effects(ctx, l.example, down*across, name, func(of data.Array) error { return hideCells(of, down, across) })
		if err != nil {
			return err
		}
		sample, most := images[k], 0.0
		for _, v := range falls {
			most = max(most, math.Abs(v))
		}
		sample.Image = tint(sample.Image, falls, down, across, most)
		sample.Note = fmt.Sprintf("by at most %.2g", most)
		tinted = append(tinted, sample)
	}
	d.draw(plots.Samples(tinted...).Titled("Saliency").Caption(fmt.Sprintf("How far the probability of the answer falls when a cell of a grid of up to %d × %d has the image's mean colour: red where it falls, blue where it rises, strongest at the image's greatest change, which is below it.", gridSide, gridSide)))
	return nil
}

// hideCells fills one cell in each image after the first with that image's mean colour.
func hideCells(of data.Array, down, across int) error {
	switch flat := of.Flat.(type) {
	case []float32:
		fillCells(flat, of.Dims, down, across)
	case []float64:
		fillCells(flat, of.Dims, down, across)
	case []uint8:
		fillCells(flat, of.Dims, down, across)
	default:
		return fmt.Errorf("images of %s: expected float32, float64 or uint8", of.DType())
	}
	return nil
}

func fillCells[N float32 | float64 | uint8](flat []N, dims []int, down, across int) {
	height, width, channels := dims[1], dims[2], dims[3]
	size := height * width * channels
	mean := make([]float64, channels)
	for i, v := range flat[:size] {
		mean[i%channels] += float64(v) / float64(height*width)
	}
	for cell := range down * across {
		picture := flat[(cell+1)*size:][:size]
		for y := cell / across * height / down; y < (cell/across+1)*height/down; y++ {
			for x := cell % across * width / across; x < (cell%across+1)*width/across; x++ {
				for c := range channels {
					picture[(y*width+x)*channels+c] = N(mean[c])
				}
			}
		}
	}
}

// tint keeps a quarter of the grey of the cell with the greatest effect.
func tint(of image.Image, falls []float64, down, across int, most float64) image.Image {
	b := of.Bounds()
	to := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	for cell, fall := range falls {
		colour, share := color.RGBA{R: 214, G: 39, B: 40}, 0.0
		if fall < 0 {
			colour = color.RGBA{R: 31, G: 90, B: 200}
		}
		if most > 0 {
			share = 0.75 * math.Abs(fall) / most
		}
		for y := cell / across * b.Dy() / down; y < (cell/across+1)*b.Dy()/down; y++ {
			for x := cell % across * b.Dx() / across; x < (cell%across+1)*b.Dx()/across; x++ {
				grey := color.GrayModel.Convert(of.At(b.Min.X+x, b.Min.Y+y)).(color.Gray)
				mixed := func(c uint8) uint8 { return uint8((1-share)*float64(grey.Y) + share*float64(c)) }
				to.SetRGBA(x, y, color.RGBA{mixed(colour.R), mixed(colour.G), mixed(colour.B), 255})
			}
		}
	}
	return to
}

type word struct {
	text     string
	from, to int
	fall     float64
}

// drawWords lists the words with the greatest effects in the worst examples' texts.
func (a *answers) drawWords(ctx context.Context, worst []loss, d *draft) error {
	var chosen []int
	for _, l := range worst {
		chosen = append(chosen, l.example)
	}
	set, err := a.only(chosen)
	if err != nil {
		return err
	}
	for _, f := range set.Fields() {
		texts, ok := f.Array.Flat.([]string)
		if !ok || !slices.Contains(a.inputs, f.Name) || !slices.ContainsFunc(texts, func(s string) bool { return len(strings.Fields(s)) >= leastWords }) {
			continue
		}
		if len(f.Array.Dims) != 1 || a.number == nil {
			return errors.New("an example has several texts or answers")
		}
		var rows [][]string
		for k, l := range worst {
			words := wordsOf(texts[k])
			falls, err := a.effects(ctx, l.example, len(words), f.Name, func(of data.Array) error {
				for i, w := range words {
					of.Flat.([]string)[i+1] = texts[k][:w.from] + texts[k][w.to:]
				}
				return nil
			})
			if err != nil {
				return err
			}
			for i := range words {
				words[i].fall = falls[i]
			}
			slices.SortStableFunc(words, func(a, b word) int { return cmp.Compare(math.Abs(b.fall), math.Abs(a.fall)) })
			var shown []string
			for _, w := range words[:min(len(words), wordsShown)] {
				shown = append(shown, fmt.Sprintf("%s %+.3g", w.text, w.fall))
			}
			rows = append(rows, []string{fmt.Sprint(l.example), a.answer(l.example), strings.Join(shown, ", ")})
		}
		d.draw(plots.Table("Words of "+f.Name, []string{"example", "answer", "words"}, rows...).Caption(fmt.Sprintf("How far the answer's %s falls without one word, of the first %d: the %d greatest changes.", a.numberName, mostWords, wordsShown)))
	}
	return nil
}

// wordsOf are the first words, with places.
func wordsOf(text string) (words []word) {
	for at := 0; at < len(text) && len(words) < mostWords; {
		from := strings.IndexFunc(text[at:], func(r rune) bool { return !unicode.IsSpace(r) })
		if from < 0 {
			break
		}
		from += at
		at = len(text)
		if n := strings.IndexFunc(text[from:], unicode.IsSpace); n >= 0 {
			at = from + n
		}
		words = append(words, word{text: text[from:at], from: from, to: at})
	}
	return words
}
