package tables

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/lazo-ml/lazo/data"
)

// Numbers converts columns of numbers, or of texts that are numbers, to float32 in a field [n, …].
type Numbers struct {
	// Columns are names. Empty means all that no other item names.
	Columns []string
	// Field is the field's name, "x" if "".
	Field string
	// Fill replaces missing values, Value with FillValue.
	Fill  Fill
	Value float64
	// Leading replaces values that FillForward finds none before. With the zero Leading they are errors.
	Leading Fill
	// Indicator adds a last column after each: 1 if the value was missing, else 0.
	Indicator bool
	// Clip has the least and the largest number, like ±Inf, and ClipQuantiles those as quantiles of the training data,
	// like 0.01 and 0.99. Numbers beyond become them. Zeros: none.
	Clip, ClipQuantiles [2]float64
	// Log takes log(1 + value). A value of -1 or less is an error.
	Log   bool
	Scale Scale
	// Bins is a number of bins of about as many examples, fewer if values repeat, as columns of 0 and 1. Edges are
	// ascending: each the first number of the next bin.
	Bins  int
	Edges []float64
}

// Scale scales numbers, after Fill, Clip and Log. The zero Scale leaves them. A column that is constant in the
// training data becomes 0.
type Scale int

const (
	noScale  Scale = iota
	Standard       // mean 0, standard deviation 1
	MinMax         // training minimum 0, maximum 1; no clipping
	Robust         // median 0, interquartile range 1
	Uniform        // quantiles of training data: 0 to 1
	Normal         // quantiles of training data as of a normal distribution: -5.2 to 5.2
)

func (n Numbers) rule() ([]string, string, error) {
	given := func(bounds [2]float64) bool { return bounds != [2]float64{} }
	low, high := n.ClipQuantiles[0], n.ClipQuantiles[1]
	switch {
	case n.Fill < noFill || n.Fill > FillForward || n.Scale < noScale || n.Scale > Normal:
		return nil, "", fmt.Errorf("the Fill is %d and the Scale %d: expected the constants of package tables", n.Fill, n.Scale)
	case n.Leading < noFill || n.Leading > FillValue || n.Leading != noFill && n.Fill != FillForward:
		return nil, "", fmt.Errorf("the Leading is %d and the Fill %d: expected a Leading of FillMean to FillValue, with Fill: tables.FillForward", n.Leading, n.Fill)
	case n.Value != 0 && n.filling() != FillValue:
		return nil, "", fmt.Errorf("the Value is %v, which is only used with Fill: tables.FillValue", n.Value)
	case math.IsNaN(n.Value) || math.IsInf(n.Value, 0):
		return nil, "", fmt.Errorf("the Value is %v, expected a finite number", n.Value)
	case n.Indicator && n.Fill == noFill:
		return nil, "", errors.New("the Indicator is set, but no Fill: without Fill a missing value is an error")
	case given(n.Clip) && !(n.Clip[0] < n.Clip[1]):
		return nil, "", fmt.Errorf("the Clip is %v, expected a number and a larger one", n.Clip)
	case given(n.ClipQuantiles) && !(0 <= low && low < high && high <= 1):
		return nil, "", fmt.Errorf("the ClipQuantiles are %v, expected two ascending numbers of 0 to 1", n.ClipQuantiles)
	case given(n.Clip) && given(n.ClipQuantiles):
		return nil, "", errors.New("both Clip and ClipQuantiles are set: expected one of them")
	case n.Bins < 0 || n.Bins == 1 || n.Bins > mostOneHot:
		return nil, "", fmt.Errorf("the Bins are %d, expected 2 to %d", n.Bins, mostOneHot)
	case (n.Bins > 0 || len(n.Edges) > 0) && n.Scale != noScale || n.Bins > 0 && len(n.Edges) > 0:
		return nil, "", errors.New("two of Scale, Bins and Edges are set: expected one of them")
	}
	return n.Columns, cmp.Or(n.Field, "x"), checkEdges(n.Edges)
}

func (n Numbers) filling() Fill {
	if n.Fill == FillForward {
		return n.Leading
	}
	return n.Fill
}

func (n Numbers) fit(names []string, columns []data.Array) ([]prepared, error) {
	return eachColumn(names, columns, n.fitColumn)
}

func (n Numbers) fitColumn(name string, column data.Array) (prepared, error) {
	c := &number{source: source{Column: name, Field: cmp.Or(n.Field, "x"), As: asNumber}, linear: linear{Scale: 1},
		Indicator: n.Indicator, Forward: n.Fill == FillForward, Log: n.Log, Edges: slices.Clone(n.Edges)}
	values, err := numbersOf(column)
	if err != nil {
		return nil, err
	}
	var there []float64
	first := -1
	for i, v := range values {
		switch {
		case !math.IsNaN(v):
			there = append(there, v)
		case first < 0:
			first = i
		}
	}
	switch by := n.filling(); {
	case n.Fill == noFill && first >= 0:
		return nil, fmt.Errorf("%d of %d values are missing, the first one in row %d: set Numbers.Fill, or leave such examples out (Set.Where)",
			len(values)-len(there), len(values), first+1)
	case by == FillValue:
		c.Fill = new(n.Value)
	case by != noFill && len(there) == 0:
		return nil, errors.New("all values are missing, so none can be computed to fill in: leave the column out, or use FillValue")
	case by != noFill:
		c.Fill = new(filling(there, by))
	}
	if err := c.fillIn(values, column.Dims, func(int) {}); err != nil {
		return nil, err
	}
	c.bound(n, values)
	for i, v := range values {
		if values[i], err = c.within(i, v); err != nil {
			return nil, err
		}
	}
	return c, c.fitScale(n, values)
}

func (c *number) bound(n Numbers, values []float64) {
	bounds := n.Clip
	if n.ClipQuantiles != ([2]float64{}) {
		sorted := slices.Sorted(slices.Values(values))
		bounds = [2]float64{quantile(sorted, n.ClipQuantiles[0]), quantile(sorted, n.ClipQuantiles[1])}
	} else if bounds == ([2]float64{}) {
		return
	}
	if isFinite(bounds[0]) {
		c.Least = &bounds[0]
	}
	if isFinite(bounds[1]) {
		c.Most = &bounds[1]
	}
}

func (c *number) fitScale(n Numbers, values []float64) (err error) {
	if n.Scale <= Robust && n.Bins == 0 {
		c.linear, err = fitLinear(values, n.Scale)
		return err
	}
	sorted := slices.Sorted(slices.Values(values))
	switch {
	case n.Bins > 0:
		if c.Edges = binEdges(sorted, n.Bins); len(c.Edges) == 0 {
			return errors.New("its values are all in one bin: leave the column out, or set Numbers.Edges")
		}
	case len(sorted) < 2:
		return fmt.Errorf("%d values, expected at least 2 for quantiles", len(sorted))
	default:
		points := min(len(sorted), mostQuantiles)
		for i := range points {
			c.Quantiles = append(c.Quantiles, quantile(sorted, float64(i)/float64(points-1)))
		}
		for i := range points - 1 { // rounding must not reorder them
			c.Quantiles[i+1] = max(c.Quantiles[i+1], c.Quantiles[i])
		}
		c.Normal = n.Scale == Normal
	}
	return nil
}

func fitLinear(values []float64, by Scale) (linear, error) {
	l := linear{Scale: 1}
	switch by {
	case Standard:
		s, err := fitScaling(data.Array{Flat: values, Dims: []int{len(values)}})
		if err != nil {
			return l, err
		}
		return linear{s.Mean[0], s.Std[0]}, nil
	case MinMax:
		l = linear{slices.Min(values), slices.Max(values) - slices.Min(values)}
	case Robust:
		sorted := slices.Sorted(slices.Values(values))
		l = linear{filling(sorted, FillMedian), quantile(sorted, 0.75) - quantile(sorted, 0.25)}
	}
	if l.Scale < 10*epsilon { // scikit-learn's bound
		l.Scale = 1
	}
	return l, nil
}

const mostQuantiles = 1000 // scikit-learn's default

// quantile interpolates linearly, as numpy.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-1)
	a, b, t := sorted[i], sorted[min(i+1, len(sorted)-1)], at-float64(i)
	if t >= 0.5 {
		return b - (b-a)*(1-t)
	}
	return a + (b-a)*t
}

// binEdges are the inner edges of scikit-learn's KBinsDiscretizer.
func binEdges(sorted []float64, bins int) (edges []float64) {
	n := len(sorted)
	before := math.Inf(-1)
	for i := range bins + 1 {
		at := float64(n)*(float64(i)*(100/float64(bins))/100) - 1
		k := int(math.Floor(at))
		edge := sorted[min(max(k+1, 0), n-1)]
		if at == float64(k) {
			edge = sorted[min(max(k, 0), n-1)]/2 + edge/2
		}
		if edge-before > 1e-8 {
			edges = append(edges, edge)
		}
		before = edge
	}
	return edges[1:max(1, len(edges)-1)]
}

func checkEdges(edges []float64) error {
	for i, edge := range edges {
		if !isFinite(edge) || i > 0 && edge <= edges[i-1] || i >= mostOneHot {
			return fmt.Errorf("the Edges are %v, expected at most %d finite, ascending numbers", edges[:i+1], mostOneHot)
		}
	}
	return nil
}

func filling(values []float64, by Fill) float64 {
	slices.Sort(values)
	switch by {
	case FillMean:
		mean := values[0] // makes the mean of equal values exact
		for _, v := range values {
			mean += (v - values[0]) / float64(len(values))
		}
		return mean
	case FillMedian:
		n := len(values)
		return values[(n-1)/2]/2 + values[n/2]/2
	}
	return mostFrequent(values)
}

func mostFrequent[T cmp.Ordered](sorted []T) (most T) {
	best := 0
	for i := 0; i < len(sorted); {
		from := i
		for i < len(sorted) && sorted[i] == sorted[from] {
			i++
		}
		if i-from > best {
			best, most = i-from, sorted[from]
		}
	}
	return most
}

// number computes, in the order of its fields.
type number struct {
	source
	Forward   bool     `json:"forward,omitempty"`
	Fill      *float64 `json:"fill,omitempty"`
	Indicator bool     `json:"indicator,omitempty"`
	Least     *float64 `json:"least,omitempty"`
	Most      *float64 `json:"most,omitempty"`
	Log       bool     `json:"log,omitempty"`
	linear
	// Quantiles divide the training data into equal parts.
	Quantiles []float64 `json:"quantiles,omitempty"`
	Normal    bool      `json:"normal,omitempty"`
	Edges     []float64 `json:"edges,omitempty"`
}

// linear is (value - Shift) / Scale.
type linear struct {
	Shift float64 `json:"shift,omitempty"`
	Scale float64 `json:"scale,omitempty"`
}

func (l *linear) scaled(v float64) float64 { return (v - l.Shift) / l.Scale }

func (l *linear) check() error {
	if !isFinite(l.Shift) || !isFinite(l.Scale) || l.Scale == 0 {
		return fmt.Errorf("the shift %v and the scale %v: expected finite numbers, and no scale of 0", l.Shift, l.Scale)
	}
	return nil
}

func isFinite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }

func (c *number) width() int {
	width := 1
	if len(c.Edges) > 0 {
		width += len(c.Edges)
	}
	if c.Indicator {
		width++
	}
	return width
}

func (c *number) names() []string {
	names := []string{c.Column}
	if len(c.Edges) > 0 {
		names = nil
		low := math.Inf(-1)
		for _, edge := range append(slices.Clip(c.Edges), math.Inf(1)) {
			names = append(names, fmt.Sprintf("%s=%v to %v", c.Column, low, edge))
			low = edge
		}
	}
	if c.Indicator {
		names = append(names, c.Column+" missing")
	}
	return names
}

func (c *number) check() error {
	finite := func(v *float64) bool { return v == nil || isFinite(*v) }
	switch {
	case !finite(c.Fill):
		return fmt.Errorf("the value to fill in is %v, expected a finite number", *c.Fill)
	case c.Indicator && c.Fill == nil && !c.Forward:
		return errors.New("an indicator without a value to fill in: set Numbers.Fill")
	case !finite(c.Least) || !finite(c.Most) || c.Least != nil && c.Most != nil && *c.Least > *c.Most:
		return errors.New("the bounds to clip to: expected finite, ascending numbers")
	case len(c.Quantiles) == 1 || len(c.Quantiles) > mostQuantiles || !slices.IsSorted(c.Quantiles) || slices.ContainsFunc(c.Quantiles, func(v float64) bool { return !isFinite(v) }):
		return fmt.Errorf("%d quantiles: expected 2 to %d finite, ascending numbers", len(c.Quantiles), mostQuantiles)
	case c.Normal && c.Quantiles == nil || c.Edges != nil && c.Quantiles != nil:
		return errors.New("normal and edges: expected the first with quantiles, the second without")
	}
	return cmp.Or(c.linear.check(), checkEdges(c.Edges))
}

// fillIn replaces missing values, and calls was with their rows. It fills no window from another.
func (c *number) fillIn(values []float64, dims []int, was func(row int)) error {
	before := math.NaN()
	for i, v := range values {
		if len(dims) > 1 && i%(len(values)/dims[0]) == 0 {
			before = math.NaN()
		}
		if !math.IsNaN(v) {
			before = v
			continue
		}
		was(i)
		switch {
		case c.Forward && !math.IsNaN(before):
			values[i] = before
		case c.Fill != nil:
			values[i] = *c.Fill
		case c.Forward:
			return rowError(i, "the value is missing, and so are all before, as of a single row: set Numbers.Leading, and fit the preparation again")
		default:
			return rowError(i, "the value is missing: set Numbers.Fill, and fit the preparation again")
		}
	}
	return nil
}

func (c *number) within(row int, v float64) (float64, error) {
	if c.Least != nil {
		v = max(v, *c.Least)
	}
	if c.Most != nil {
		v = min(v, *c.Most)
	}
	if !c.Log {
		return v, nil
	}
	if v <= -1 {
		return 0, rowError(row, "log(1 + %v) does not exist: expected more than -1: set Numbers.Clip, or leave out Log", v)
	}
	return math.Log1p(v), nil
}

func (c *number) convert(columns []data.Array, to cells) error {
	values, err := numbersOf(columns[0])
	if err != nil {
		return err
	}
	last := c.width() - 1
	if err := c.fillIn(values, columns[0].Dims, func(row int) {
		if c.Indicator {
			to.numbers[row*to.stride+last] = 1
		}
	}); err != nil {
		return err
	}
	for i, from := range values {
		v, err := c.within(i, from)
		switch {
		case err != nil:
			return err
		case len(c.Edges) > 0:
			bin, edge := slices.BinarySearch(c.Edges, v)
			if edge {
				bin++
			}
			to.numbers[i*to.stride+bin] = 1
			continue
		case len(c.Quantiles) > 0:
			v = c.byQuantile(v)
		default:
			v = c.scaled(v)
		}
		if err := to.put(i, 0, v, from); err != nil {
			return err
		}
	}
	return nil
}

// byQuantile is scikit-learn's QuantileTransformer.
func (c *number) byQuantile(v float64) float64 {
	q := c.Quantiles
	last := len(q) - 1
	const bound = 1e-7
	near := 0.0
	if c.Normal {
		near = bound
	}
	share := 0.0
	switch {
	case v <= q[0] || v-near < q[0]:
	case v >= q[last] || v+near > q[last]:
		share = 1
	default:
		// Of equal quantiles, the mean of the first and the last.
		low, _ := slices.BinarySearch(q, v)
		high := sort.Search(len(q), func(i int) bool { return q[i] > v }) - 1
		share = (float64(low) + float64(high)) / 2
		if high < low {
			share = float64(high) + (v-q[high])/(q[low]-q[high])
		}
		share /= float64(last)
	}
	if !c.Normal {
		return share
	}
	most := math.Sqrt2 * math.Erfinv(1-2*bound)
	return min(max(math.Sqrt2*math.Erfinv(2*share-1), -most), most)
}

// Ordered returns the columns of [FillForward], whose values depend on the rows before, not only on a window's.
func (p *Preparation) Ordered() (columns []string) {
	if p == nil {
		return nil
	}
	for _, c := range p.columns {
		if n, ok := c.(*number); ok && n.Forward && len(n.Dims) == 0 {
			columns = append(columns, n.Column)
		}
	}
	return columns
}
