package strategies

import (
	"reflect"

	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/data"
)

type field struct {
	Input
	each   shapes.Shape // one device's part
	starts []int        // first element per device
}

func (f *field) part(from, d int, flat any) any {
	if len(f.starts) == 1 {
		return flat
	}
	start := f.start(from, d)
	return reflect.ValueOf(flat).Slice(start, start+f.each.Size()).Interface()
}

// start is relative to the process's data.
func (f *field) start(from, d int) int {
	if f.Of > 1 {
		return f.starts[from+d] - f.starts[from]
	}
	return f.starts[from+d]
}

type stagedRun struct {
	running Running
	stacks  []*stack // by device and field, for separate batches
	host    []any
}

// The caller of [Program.Start] gets the error from Wait.
func (r *stagedRun) wait() {
	if r.running != nil {
		_ = r.running.Wait()
		r.running = nil
	}
}

// stack stacks a block's batches per device and field. It uses batches that are adjacent in memory, for all k,
// directly; the device reads no further.
func (r *stagedRun) stack(fields []field, batches []data.Batch, k, from, devices int) []any {
	if len(fields) > 0 && len(fields[0].starts) == 1 {
		var ok bool
		if r.host, ok = data.Stacked(r.host[:0], batches, k); ok {
			return r.host
		}
	}
	if r.stacks == nil {
		for range devices {
			for _, f := range fields {
				r.stacks = append(r.stacks, newStack(f.each, k))
			}
		}
	}
	r.host = r.host[:0]
	for j, to := range r.stacks {
		d, f := j/len(fields), j%len(fields)
		for i := range batches {
			to.put(i, batches[i].Fields[f].Array.Flat, fields[f].start(from, d))
		}
		r.host = append(r.host, to.flat)
	}
	return r.host
}

type stack struct {
	flat any
	rows reflect.Value
	row  int
}

func newStack(shape shapes.Shape, k int) *stack {
	rows := reflect.MakeSlice(reflect.SliceOf(shape.DType.GoType()), k*shape.Size(), k*shape.Size())
	return &stack{rows.Interface(), rows, shape.Size()}
}

func (s *stack) put(i int, flat any, start int) {
	reflect.Copy(s.rows.Slice(i*s.row, (i+1)*s.row), reflect.ValueOf(flat).Slice(start, start+s.row))
}
