package main

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// an all-reduce on one machine: bytes per rank, least seconds
type sum struct {
	ranks   int
	bytes   float64
	seconds float64
}

// cacheBytes stay in caches, by assumption.
const cacheBytes = 1 << 20

// latency, and seconds per byte within and beyond caches
type shared struct {
	latency, cached, memory float64
	cpus                    int
}

func (s shared) seconds(ranks int, bytes float64) float64 {
	seconds, _ := s.fastest(ranks, bytes)
	return seconds
}

func (s shared) fastest(ranks int, bytes float64) (seconds float64, name string) {
	each := s.cached
	if bytes > cacheBytes {
		each = s.memory
	}
	turns := max(1, float64(ranks)/float64(s.cpus))
	seconds, name = fastest(algorithms, ranks, bytes, link{s.latency, 1 / max(each, 1e-18)})
	return turns * seconds, name
}

// fitted minimizes squared relative errors, with the fastest algorithm by the current figures.
func fitted(list []sum, cpus int) (shared, error) {
	if len(list) < 4 {
		return shared{}, errors.New("fewer than 4 sums to find three figures from")
	}
	smallest := slices.MinFunc(list, func(a, b sum) int { return cmp.Compare(a.seconds, b.seconds) })
	largest := slices.MaxFunc(list, func(a, b sum) int { return cmp.Compare(a.bytes, b.bytes) })
	s := shared{latency: smallest.seconds / 2, cached: largest.seconds / largest.bytes / 4, memory: largest.seconds / largest.bytes / 4, cpus: cpus}
	for range 50 {
		var rows [][3]float64
		for _, m := range list {
			_, name := s.fastest(m.ranks, m.bytes)
			a := algorithms[slices.IndexFunc(algorithms, func(a algorithm) bool { return a.name == name })]
			turns := max(1, float64(m.ranks)/float64(cpus))
			row := [3]float64{turns * a.seconds(m.ranks, 0, link{1, 1}) / m.seconds}
			at := 1
			if m.bytes > cacheBytes {
				at = 2
			}
			row[at] = turns * a.seconds(m.ranks, m.bytes, link{0, 1}) / m.seconds
			rows = append(rows, row)
		}
		x := leastSquares(rows)
		next := shared{x[0], x[1], x[2], cpus}
		if next == s {
			break
		}
		s = next
	}
	return s, nil
}

// leastSquares returns the x ≥ 0 for which the rows' products are closest to 1.
func leastSquares(rows [][3]float64) (x [3]float64) {
	best := math.Inf(1)
	for mask := 1; mask < 8; mask++ { // possibly positive columns
		var columns []int
		for c := range 3 {
			if mask>>c&1 == 1 {
				columns = append(columns, c)
			}
		}
		solution, ok := solve(rows, columns)
		if !ok || slices.Min(solution) < 0 {
			continue
		}
		var full [3]float64
		for i, c := range columns {
			full[c] = solution[i]
		}
		var square float64
		for _, row := range rows {
			d := row[0]*full[0] + row[1]*full[1] + row[2]*full[2] - 1
			square += d * d
		}
		if square < best {
			best, x = square, full
		}
	}
	return x
}

func solve(rows [][3]float64, columns []int) ([]float64, bool) {
	n := len(columns)
	// The figures differ by 6 digits.
	scale := make([]float64, n)
	for i, c := range columns {
		for _, row := range rows {
			scale[i] += row[c] * row[c]
		}
		if scale[i] = math.Sqrt(scale[i]); scale[i] == 0 {
			return nil, false
		}
	}
	m := make([][]float64, n)
	for i, c := range columns {
		m[i] = make([]float64, n+1)
		for _, row := range rows {
			for k, d := range columns {
				m[i][k] += row[c] * row[d] / scale[i] / scale[k]
			}
			m[i][n] += row[c] / scale[i]
		}
	}
	for i := range n { // Gauss-Jordan
		pivot := i
		for r := i + 1; r < n; r++ {
			if math.Abs(m[r][i]) > math.Abs(m[pivot][i]) {
				pivot = r
			}
		}
		m[i], m[pivot] = m[pivot], m[i]
		if math.Abs(m[i][i]) < 1e-12 {
			return nil, false
		}
		for r := range n {
			if r == i {
				continue
			}
			f := m[r][i] / m[i][i]
			for c := i; c <= n; c++ {
				m[r][c] -= f * m[i][c]
			}
		}
	}
	x := make([]float64, n)
	for i := range n {
		x[i] = m[i][n] / m[i][i] / scale[i]
	}
	return x, true
}

func errorsOf(s shared, list []sum) (factors []float64) {
	for _, m := range list {
		factors = append(factors, math.Exp(math.Abs(math.Log(s.seconds(m.ranks, m.bytes)/m.seconds))))
	}
	slices.Sort(factors)
	return factors
}

// heldOut sums, of intermediate ranks and sizes, are for validation.
func heldOut(m sum) bool {
	return m.ranks == 3 || m.ranks == 6 || m.bytes == 16<<10 || m.bytes == 4<<20
}
