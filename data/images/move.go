package images

import "github.com/lazo-ml/lazo/internal/arrays"

// move's from are the dims of flat, [n, height, width, channels]. pixels returns the source row and column of an
// image's, -1 for zeros.
func move(flat any, from, dims []int, pixels func(image int) (rows, columns []int)) any {
	switch flat := flat.(type) {
	case []bool:
		return moveOf(flat, from, dims, pixels)
	case []int8:
		return moveOf(flat, from, dims, pixels)
	case []int16:
		return moveOf(flat, from, dims, pixels)
	case []int32:
		return moveOf(flat, from, dims, pixels)
	case []int64:
		return moveOf(flat, from, dims, pixels)
	case []uint8:
		return moveOf(flat, from, dims, pixels)
	case []uint16:
		return moveOf(flat, from, dims, pixels)
	case []uint32:
		return moveOf(flat, from, dims, pixels)
	case []uint64:
		return moveOf(flat, from, dims, pixels)
	case []float32:
		return moveOf(flat, from, dims, pixels)
	case []float64:
		return moveOf(flat, from, dims, pixels)
	case []string:
		return moveOf(flat, from, dims, pixels)
	}
	return nil
}

func moveOf[T arrays.Element](source []T, from, dims []int, pixels func(image int) (rows, columns []int)) []T {
	h, w, channels := from[1], from[2], from[3]
	size, _ := arrays.Size(dims...)
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

// run is copied forwards (step 1) or backwards (-1).
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
