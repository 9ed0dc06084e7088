// Package reused finds a data source that writes a batch into the memory of an earlier one. A loop that holds several
// batches would then make their steps on the same numbers.
package reused

import (
	"hash/crc32"
	"reflect"
	"unsafe"
)

// Watch looks at the first batches of a source. The zero Watch is ready for use.
type Watch struct {
	taken int
	seen  map[uintptr]content
}

type content struct {
	batch int
	sum   uint32
}

const (
	watched = 8 // batches: a source may take turns with several memories
	depth   = 5 // of a batch's structs and lists
	listed  = 64
	whole   = 1 << 16 // bytes of an array that are compared; of a larger one, parts
	parts   = 16
)

// Done reports whether Next has seen enough batches.
func (w *Watch) Done() bool { return w.taken == watched }

// Next looks at the next batch. If an array of it lies in the memory of an array of an earlier batch and has other
// contents, Next returns the number of the newest such batch, from 1; otherwise 0.
func (w *Watch) Next(batch any) (of int) {
	if w.seen == nil {
		w.seen = map[uintptr]content{}
	}
	w.taken++
	v := reflect.ValueOf(batch)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	each(v, depth, func(memory []byte) {
		at, now := uintptr(unsafe.Pointer(unsafe.SliceData(memory))), content{w.taken, sum(memory)}
		if before, ok := w.seen[at]; ok && before.batch < now.batch && before.sum != now.sum {
			of = max(of, before.batch)
		}
		w.seen[at] = now
	})
	return of
}

// each calls do with the memory of each slice of numbers within v. It does not follow pointers.
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

func sum(memory []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	if len(memory) <= whole {
		return crc32.Checksum(memory, table)
	}
	all, size := uint32(0), whole/parts
	for i := range parts {
		at := (len(memory) - size) / (parts - 1) * i
		all = crc32.Update(all, table, memory[at:at+size])
	}
	return all
}
