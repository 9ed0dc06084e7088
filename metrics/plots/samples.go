package plots

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sample is an image with a classifier's prediction.
type Sample struct {
	Image image.Image
	// Label names the true class, "" if unknown; Predicted the predicted one.
	Label, Predicted string
	Probability      float64
	Note             string
}

const (
	picture     = 96 // an image's longer side
	pixels      = 192
	mostSamples = 200
)

// Samples draws at most 200 images with their predictions. Wrong ones have a thick frame and a note.
func Samples(samples ...Sample) *Figure {
	f := &Figure{title: "Samples"}
	switch {
	case len(samples) == 0:
		return failed(f.title, errors.New("there are none"))
	case len(samples) > mostSamples:
		return failed(f.title, fmt.Errorf("%d are more than the %d that are drawn: take some", len(samples), mostSamples))
	}
	for i, s := range samples {
		switch {
		case s.Image == nil || s.Image.Bounds().Empty():
			return failed(f.title, fmt.Errorf("sample %d has no image", i))
		case !(s.Probability >= 0 && s.Probability <= 1):
			return failed(f.title, fmt.Errorf("the probability of sample %d is %v, expected 0 to 1", i, s.Probability))
		}
		f.panels = append(f.panels, s.panel())
	}
	return f
}

func (s Sample) panel() panel {
	shown := enlarged(s.Image)
	size := shown.Bounds().Size()
	width, height := picture*vg.Length(size.X)/pixels, picture*vg.Length(size.Y)/pixels
	said := " (" + share(s.Probability) + ")"
	what, edge := "", writing{colour: grey}
	switch {
	case s.Label != "" && s.Label != s.Predicted:
		what = "wrong: is " + s.Label
		edge = writing{colour: vermilion, bold: true}
	case s.Label != "":
		what = "right"
	}
	tall := vg.Length(picture + 40)
	if s.Note != "" {
		tall += legendRow
	}
	return panel{strings.TrimSpace(fmt.Sprintf("predicted %s%s %s %s", s.Predicted, said, what, s.Note)), picture + 10, tall, func(c canvas) {
		left, top := 5+(picture-width)/2, 5+(picture-height)/2
		if edge.bold {
			c.box(left-4, top-4, width+8, height+8, vermilion, nil)
		}
		c.box(left-1, top-1, width+2, height+2, white, nil)
		c.DrawImage(vg.Rectangle{Min: c.at(left, top+height), Max: c.at(left+width, top)}, shown)
		c.box(left, top, width, height, nil, pale)
		c.text(5+picture/2, picture+17, 0, writing{align: draw.XCenter},
			writing{}.cutBefore(clean(s.Predicted), said, picture+8))
		c.text(5+picture/2, picture+30, picture+8, writing{align: draw.XCenter, colour: edge.colour, bold: edge.bold}, what)
		c.text(5+picture/2, picture+43, picture+8, writing{align: draw.XCenter, colour: grey}, s.Note)
	}}
}

func enlarged(from image.Image) image.Image {
	b := from.Bounds()
	longer := max(b.Dx(), b.Dy())
	to := image.NewRGBA(image.Rect(0, 0, max(1, b.Dx()*pixels/longer), max(1, b.Dy()*pixels/longer)))
	for y := range to.Rect.Dy() {
		for x := range to.Rect.Dx() {
			to.Set(x, y, from.At(b.Min.X+x*b.Dx()/to.Rect.Dx(), b.Min.Y+y*b.Dy()/to.Rect.Dy()))
		}
	}
	return to
}

// Image makes an image of numbers [height, width, channels], with one channel (grey) or three (RGB), clamped from
// black to white.
func Image(values []float32, height, width, channels int, black, white float32) (image.Image, error) {
	switch {
	case channels != 1 && channels != 3:
		return nil, fmt.Errorf("plots: image: %d channels, expected 1 or 3", channels)
	case height < 1 || width < 1 || height > 1<<20 || width > 1<<20 || len(values) != height*width*channels:
		return nil, fmt.Errorf("plots: image: %d numbers for [%d, %d, %d]", len(values), height, width, channels)
	case !(black != white) || !finite(float64(black)) || !finite(float64(white)):
		return nil, fmt.Errorf("plots: image: black is %v and white %v: two different numbers are expected", black, white)
	}
	to := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range height * width {
		var light [3]uint8
		for k := range light {
			v := values[i*channels+k%channels]
			if v != v {
				return nil, fmt.Errorf("plots: image: the number at [%d, %d, %d] is NaN", i/width, i%width, k%channels)
			}
			light[k] = uint8(math.Round(255 * min(1, max(0, float64(v-black)/float64(white-black)))))
		}
		to.SetRGBA(i%width, i/width, color.RGBA{light[0], light[1], light[2], 0xFF})
	}
	return to, nil
}
