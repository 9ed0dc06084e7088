package data

import (
	"slices"

	"github.com/lazo-ml/lazo/internal/dtype"
)

type element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | string
}

type elements interface {
	len(flat any) int
	slice(flat any, i, j int) any
	is(flat any, i, j int, part any) bool
	make(n int) any
	gather(to, flat any, rows []int, width int)
	concat(parts []any) any
	// Images are [n, height, width, channels]. pixels returns the source row and column of an image's, -1 for zeros.
	move(flat any, from, dims []int, pixels func(image int) (rows, columns []int)) any
}

// of has no fields: an elements value does not allocate.
type of[T element] struct{}

func elementsOf(flat any) elements {
	if t, _ := dtype.Of(flat); t != 0 {
		return allElements[t]
	}
	return of[string]{}
}

var allElements = [dtype.Count]elements{
	dtype.Bool: of[bool]{},
	dtype.Int8: of[int8]{}, dtype.Int16: of[int16]{}, dtype.Int32: of[int32]{}, dtype.Int64: of[int64]{},
	dtype.Uint8: of[uint8]{}, dtype.Uint16: of[uint16]{}, dtype.Uint32: of[uint32]{}, dtype.Uint64: of[uint64]{},
	dtype.Float32: of[float32]{}, dtype.Float64: of[float64]{},
}

func (of[T]) len(flat any) int { return len(flat.([]T)) }

// The capacity ends with the view: an append does not overwrite the next rows.
func (of[T]) slice(flat any, i, j int) any { return flat.([]T)[i:j:j] }

func (of[T]) is(flat any, i, j int, part any) bool {
	p, ok := part.([]T)
	return ok && len(p) == j-i && (i == j || &p[0] == &flat.([]T)[i])
}

func (of[T]) make(n int) any { return make([]T, n) }

func (of[T]) gather(to, flat any, rows []int, width int) {
	from, rest := flat.([]T), to.([]T)
	if width == 1 { // a call of copy costs more than the element
		for i, r := range rows {
			rest[i] = from[r]
		}
		return
	}
	for _, r := range rows {
		copy(rest, from[r*width:(r+1)*width])
		rest = rest[width:]
	}
}

func (of[T]) concat(parts []any) any {
	all := make([][]T, len(parts))
	for i, p := range parts {
		all[i] = p.([]T)
	}
	return slices.Concat(all...)
}

func (of[T]) move(flat any, from, dims []int, pixels func(image int) (rows, columns []int)) any {
	source := flat.([]T)
	h, w, channels := from[1], from[2], from[3]
	size, _ := product(dims)
	to := make([]T, size)
	rest := to
	width := dims[2] * channels
	for n := range dims[0] {
		rows, columns := pixels(n)
		runs := runsOf(columns)
		image := source[n*h*w*channels : (n+1)*h*w*channels]
		for _, r := range rows {
			line := rest[:width]
			rest = rest[width:]
			if r < 0 {
				continue
			}
			row := image[r*w*channels : (r+1)*w*channels]
			for _, run := range runs {
				part := line[run.to*channels : (run.to+run.n)*channels]
				switch {
				case run.step > 0:
					copy(part, row[run.from*channels:])
				case channels == 3:
					back := row[(run.from-run.n+1)*3 : (run.from+1)*3]
					for len(part) >= 3 && len(back) >= 3 {
						last := back[len(back)-3:]
						part[0], part[1], part[2] = last[0], last[1], last[2]
						part, back = part[3:], back[:len(back)-3]
					}
				default:
					for k := range run.n {
						at := (run.from - k) * channels
						copy(part[k*channels:(k+1)*channels], row[at:at+channels])
					}
				}
			}
		}
	}
	return to
}

// run is n adjacent pixels, copied forwards (step 1) or backwards (-1).
type run struct{ to, from, n, step int }

func runsOf(columns []int) (runs []run) {
	for to, from := range columns {
		if from < 0 {
			continue
		}
		if k := len(runs) - 1; k >= 0 && runs[k].to+runs[k].n == to {
			last := &runs[k]
			if step := from - (last.from + (last.n-1)*last.step); (step == 1 || step == -1) && (last.n == 1 || step == last.step) {
				last.n++
				last.step = step
				continue
			}
		}
		runs = append(runs, run{to, from, 1, 1})
	}
	return runs
}
