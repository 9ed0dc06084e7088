package main

import (
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/images"
	"github.com/lazo-ml/lazo/loop"
)

type benchDataCommand struct {
	Dir string `arg:"" help:"Folder of PNG and JPEG files, with a folder for each class."`

	Height   int    `default:"224" placeholder:"PIXELS" help:"Height that images are brought to."`
	Width    int    `default:"224" placeholder:"PIXELS" help:"Width that images are brought to."`
	Channels int    `default:"3" enum:"1,3" placeholder:"N" help:"1 for grey, 3 for colours."`
	Resize   string `default:"stretch" enum:"no,stretch,crop" help:"How: no, stretch, or crop (the middle, in proportion)."`
	Crop     int    `placeholder:"PIXELS" help:"Side of the part that is taken at random."`
	Flip     bool   `help:"Mirror every second image."`
	Batch    int    `default:"64" placeholder:"N" help:"Images of a batch."`
	Passes   int    `default:"1" placeholder:"N" help:"Passes over the folder, of which the first may be slow, from the disk."`
}

func (c benchDataCommand) Run(s session) error {
	if c.Passes < 1 {
		return fmt.Errorf("passes must be at least 1, got %d", c.Passes)
	}
	resize := map[string]images.Resize{"no": 0, "stretch": images.Stretch, "crop": images.CropCentre}[c.Resize]
	set, err := images.Open(c.Dir, images.Format{Height: c.Height, Width: c.Width, Channels: c.Channels, Resize: resize})
	if err != nil {
		return err
	}
	var changes []images.Augmentation
	if c.Crop != 0 {
		changes = append(changes, images.RandomCrop(c.Crop, c.Crop, 0))
	}
	if c.Flip {
		changes = append(changes, images.FlipHorizontal())
	}
	if len(changes) > 0 {
		if set, err = set.MapBatches(images.Augment(1, "x", changes...)); err != nil {
			return err
		}
	}
	var stages data.Stages
	begin, images, batches, dims := time.Now(), 0, 0, []int(nil)
	each := loop.Over(set.Batches(c.Batch, data.Shuffle(1), data.Kept, data.Timed(&stages)), loop.Until(loop.Epochs(c.Passes)))
	for pass, err := range each {
		if err == nil {
			err = s.ctx.Err()
		}
		if err != nil {
			return err
		}
		b := pass.Batch
		x, err := b.Field("x")
		if err != nil {
			return err
		}
		images, batches, dims = images+b.Size, batches+1, x.Dims[1:]
	}
	took := time.Since(begin)
	fmt.Fprintf(s.stdout, "%d images of %d classes as float32 %v, in %d batches\n", images, len(set.Classes("y")), dims, batches)
	times := maps.Collect(stages.All())
	sum := time.Duration(0)
	for _, t := range times {
		sum += t
	}
	w := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "stage\timages/s\tshare\tms/image\t")
	row := func(name string, took time.Duration, share float64) {
		fmt.Fprintf(w, "%s\t%.0f\t%.1f%%\t%.4f\t\n", name, float64(images)/took.Seconds(), 100*share, 1e3*took.Seconds()/float64(images))
	}
	for _, name := range slices.SortedStableFunc(maps.Keys(times), func(a, b string) int { return int(times[b] - times[a]) }) {
		row(name, times[name], float64(times[name])/float64(sum))
	}
	row("all, one at a time", sum, 1)
	row("all, side by side", took, took.Seconds()/sum.Seconds())
	return w.Flush()
}
