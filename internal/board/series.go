package board

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

type point struct {
	step           int64
	seconds, value float64
}

// most limits the points of a series, about 24 MB.
const most = 1 << 20

// series has points of increasing steps and seconds that do not decrease.
type series struct {
	points []point
	source string
	// rewound counts the removals, after which a page reads all again.
	rewound int
	newest  point
}

func (s *series) add(p point, most int) {
	s.newest = p
	if n := len(s.points); n > 0 {
		last := &s.points[n-1]
		p.seconds = max(p.seconds, last.seconds)
		if p.step <= last.step {
			last.value, last.seconds = p.value, p.seconds
			return
		}
	}
	if s.points = append(s.points, p); len(s.points) > most {
		s.thin()
	}
}

// thin keeps the extremes of each four points of the older half.
func (s *series) thin() {
	half := len(s.points) / 2 &^ 3
	kept := s.points[:0]
	for i := 0; i < half; i += 4 {
		four := s.points[i : i+4]
		low, high := 0, 0
		for k, p := range four {
			if !(p.value >= four[low].value) {
				low = k
			}
			if !(p.value <= four[high].value) {
				high = k
			}
		}
		a, b := four[min(low, high)], four[max(low, high)]
		if kept = append(kept, a); low != high {
			kept = append(kept, b)
		}
	}
	s.points = append(kept, s.points[half:]...)
	s.rewound++
}

func (s *series) rewind(step int64) {
	at, _ := slices.BinarySearchFunc(s.points, step, func(p point, step int64) int { return cmp.Compare(p.step, step) })
	if at < len(s.points) {
		s.points, s.rewound = s.points[:at], s.rewound+1
	}
}

type axis func(p point) float64

func bySteps(p point) float64   { return float64(p.step) }
func bySeconds(p point) float64 { return p.seconds }

func (s *series) between(x axis, from, to float64) []point {
	before := func(p point, at float64) int { return cmp.Compare(x(p), at) }
	low, _ := slices.BinarySearchFunc(s.points, from, before)
	high := len(s.points)
	if !math.IsInf(to, 1) {
		high, _ = slices.BinarySearchFunc(s.points, math.Nextafter(to, math.Inf(1)), before)
	}
	return s.points[low:max(low, high)]
}

// bucketOf returns a power of two for which the widest range has at most width buckets, or 0 if no range has more
// points.
func bucketOf(x axis, width int, ranges ...[]point) float64 {
	span, many := 0.0, false
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range ranges {
		if len(r) > 0 {
			low, high = min(low, x(r[0])), max(high, x(r[len(r)-1]))
			many = many || len(r) > width
		}
	}
	if span = high - low; !many || !(span > 0) {
		return 0
	}
	return math.Exp2(math.Ceil(math.Log2(span / float64(width))))
}

// columns are the points of a series, or of each bucket the mean, the lowest and the highest value.
type columns struct{ x, mean, low, high []float64 }

func reduce(points []point, x axis, bucket float64) (c columns) {
	if bucket == 0 {
		for _, p := range points {
			c.add(x(p), p.value, p.value, p.value)
		}
		return c
	}
	for i := 0; i < len(points); {
		place := math.Floor(x(points[i]) / bucket)
		low, high, sum, finite := math.Inf(1), math.Inf(-1), 0.0, 0
		end := i
		for ; end < len(points) && math.Floor(x(points[end])/bucket) == place; end++ {
			if v := points[end].value; !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high, sum, finite = min(low, v), max(high, v), sum+v, finite+1
			}
		}
		at := (x(points[i]) + x(points[end-1])) / 2
		if finite == 0 {
			low, high = math.NaN(), math.NaN()
		}
		c.add(at, sum/float64(finite), low, high)
		i = end
	}
	return c
}

func (c *columns) add(x, mean, low, high float64) {
	c.x, c.mean, c.low, c.high = append(c.x, x), append(c.mean, mean), append(c.low, low), append(c.high, high)
}

const digits = 7 // of a value: more cannot be seen in a curve

// appendJSON writes null for non-finite numbers.
func (c columns) appendJSON(b []byte) []byte {
	for i, column := range [][]float64{c.x, c.mean, c.low, c.high} {
		b = append(b, `,"`+[]string{"x", "mean", "low", "high"}[i]+`":[`...)
		for k, v := range column {
			if k > 0 {
				b = append(b, ',')
			}
			switch {
			case math.IsNaN(v) || math.IsInf(v, 0):
				b = append(b, "null"...)
			case i == 0:
				b = strconv.AppendFloat(b, v, 'g', -1, 64)
			default:
				b = strconv.AppendFloat(b, v, 'g', digits, 64)
			}
		}
		b = append(b, ']')
	}
	return b
}
