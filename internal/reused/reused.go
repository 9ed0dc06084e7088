// Package reused finds a data source that writes a batch into the memory of an earlier one.
package reused

import (
	"bytes"
	"cmp"
	"reflect"
	"unsafe"
)

type Watch struct {
	taken int
	// seen keeps the batches' memory, so that no other array can begin there.
	seen map[*byte]content
}

type content struct {
	first, last int
	bytes       []byte
}

const (
	watched  = 8 // batches: a source may take turns with several memories
	depth    = 5
	listed   = 64
	compared = 1 << 16 // bytes of each array
)

func (w *Watch) Done() bool { return w.taken == watched }

// Next looks at the next batch. If one of its arrays begins where an array of earlier batches does, and their common
// part has changed, Next returns the numbers of the first and the last such batch, from 1; else 0.
func (w *Watch) Next(batch any) (first, last int) {
	if w.seen == nil {
		w.seen = map[*byte]content{}
	}
	w.taken++
	v := reflect.ValueOf(batch)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	each(v, depth, func(memory []byte) {
		at, now := unsafe.SliceData(memory), content{w.taken, w.taken, bytes.Clone(memory[:min(len(memory), compared)])}
		if before, ok := w.seen[at]; ok && before.last < w.taken {
			if n := min(len(before.bytes), len(now.bytes)); bytes.Equal(before.bytes[:n], now.bytes[:n]) {
				now.first = before.first
			} else {
				first, last = min(before.first, cmp.Or(first, before.first)), max(last, before.last)
			}
		}
		w.seen[at] = now
	})
	if w.Done() {
		w.seen = nil
	}
	return first, last
}

// not through pointers
func each(v reflect.Value, depth int, do func(memory []byte)) {
	switch {
	case depth == 0:
	case v.Kind() == reflect.Interface:
		each(v.Elem(), depth, do)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			each(v.Field(i), depth-1, do)
		}
	case v.Kind() == reflect.Slice && v.Len() > 0:
		kind := v.Type().Elem()
		if reflect.Bool <= kind.Kind() && kind.Kind() <= reflect.Complex128 {
			do(unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(kind.Size())))
			return
		}
		for i := range min(v.Len(), listed) {
			each(v.Index(i), depth-1, do)
		}
	}
}
