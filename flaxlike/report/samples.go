package report

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/metrics/plots"
)

const (
	mostShown = 24
	mostWrong = 12
)

// samples are the examples of the highest loss, then the first other right ones.
func (r Run) samples(a *answers, c classified, worst []loss) (samples []plots.Sample, how string, err error) {
	if c.places > 1 || c.kind == "multi-label" {
		return nil, "", errors.New("an example has several labels: the worst examples are a table")
	}
	var chosen []int
	notes := map[int]string{}
	for _, l := range worst {
		chosen = append(chosen, l.example)
		notes[l.example] = fmt.Sprintf("loss %.4g", l.value)
	}
	for i, class := range c.after {
		if len(chosen) < mostShown && class == c.labels[i] && c.counts[i] && notes[i] == "" {
			chosen = append(chosen, i)
		}
	}
	set, err := a.set.Gather(chosen)
	if err != nil {
		return nil, "", err
	}
	images, err := fieldOf(set, r.images(), "Images", r.Images != "")
	if err != nil {
		return nil, "", err
	}
	d := images.Dims
	if len(d) != 4 || d[3] != 1 && d[3] != 3 || d[1] < 1 || d[2] < 1 {
		return nil, "", fmt.Errorf("the inputs %v are not images: expected [examples, height, width, 1 or 3]", d)
	}
	black, white := light(images)
	for k, i := range chosen {
		var values []float32
		for _, v := range numbers(images.Slice(k, k+1).Flat) {
			values = append(values, float32(v))
		}
		image, err := plots.Image(values, d[1], d[2], d[3], black, white)
		if err != nil {
			return nil, "", fmt.Errorf("example %d: %w", i, err)
		}
		samples = append(samples, plots.Sample{Image: image, Label: c.names[c.labels[i]], Predicted: c.names[c.after[i]],
			Probability: min(1, c.of(i, c.after[i])), Note: notes[i]})
	}
	return samples, fmt.Sprintf("%s; then %d others with a right answer, in the order of the test set.", worstOf(a, worst), len(chosen)-len(worst)), nil
}

func (r Run) images() string {
	if r.Images == "" {
		return "x"
	}
	return r.Images
}

func light(images data.Array) (black, white float32) {
	all := numbers(images.Flat)
	low, high := slices.Min(all), slices.Max(all)
	switch {
	case low >= 0 && high <= 1:
		return 0, 1
	case low >= 0 && high <= 255:
		return 0, 255
	case low < high:
		return float32(low), float32(high)
	}
	return float32(low), float32(low) + 1
}
