package parquet

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

// batches of size 0 is one of all rows.
func batches(file io.ReaderAt, bytes int64, format Format, size int64, yield func(data.Batch, error) bool) error {
	r, err := openRows(file, bytes, format)
	if err != nil {
		return err
	}
	defer r.close()
	total := r.footer.rows
	size = cmp.Or(size, total)
	inBlocks := r.inBlocks()
	for {
		n := int64(0)
		for want := min(size, total-r.row); n < want; n++ {
			more, err := r.more()
			if err == nil && !more {
				err = damaged(r.footer.end, "the file has fewer rows than it says")
			}
			if err == nil && n <= 1 { // a list's width is known after its first row
				err = r.reserve(want - n)
			}
			if err == nil && inBlocks {
				if k := r.block(want - n); k > 0 {
					n += k - 1
					continue
				}
			}
			if err == nil {
				err = r.take()
			}
			if err != nil {
				return err
			}
		}
		if n == 0 {
			_, err := r.more()
			if err == nil && r.row == 0 {
				err = errors.New("the file has no examples")
			}
			return err
		}
		b, taken := r.batch(int(n))
		b.At = int(r.row - n)
		if r.row == total { // a damaged file must not become a set
			if _, err := r.more(); err != nil {
				return err
			}
		}
		if !yield(b, nil) || r.row == total {
			return nil
		}
		r.mem.left += taken
	}
}

func (r *rows) reserve(n int64) error {
	for k := range r.fields {
		f := &r.fields[k]
		if f.width == 0 {
			continue
		}
		if n > math.MaxInt/2/int64(f.width) {
			return r.mem.take(r.mem.left + 1)
		}
		if err := f.sink.reserve(int(n) * f.width); err != nil {
			return err
		}
	}
	return nil
}

func (r *rows) batch(n int) (data.Batch, int64) {
	b := data.Batch{Fields: make([]data.Field, len(r.fields)), Size: n}
	all := int64(0)
	for k, f := range r.fields {
		flat, taken := f.sink.flat()
		all += taken
		b.Fields[k] = data.Field{Name: f.Name, Array: data.Array{Flat: flat, Dims: slices.Concat([]int{n}, f.dims)}}
	}
	return b, all
}
