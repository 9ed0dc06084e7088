// Package gomlxdata gives GoMLX's datasets to lazo, and lazo's batches to GoMLX's trainer.
package gomlxdata

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/train"

	"github.com/lazo-ml/lazo/data"
)

// From is the batches of a GoMLX dataset: its inputs and labels become fields of the given names, in that order. Each pass
// begins with ds.Reset; one pass at a time, as a dataset has one place. Values are copied, and the tensors freed where
// the dataset passes them on for good. An error of ds is the last that comes. The examples are counted by the first axis of the
// first field. A dataset that never ends makes a sequence that never ends: see [data.Take].
func From(ds train.Dataset, inputs, labels []string) iter.Seq2[data.Batch, error] {
	return func(yield func(data.Batch, error) bool) {
		if ds == nil {
			yield(data.Batch{}, errors.New("gomlxdata: from: there is no dataset (nil)"))
			return
		}
		ds.Reset()
		for at := 0; ; {
			_, in, out, err := ds.Yield()
			if err == io.EOF {
				return
			}
			var b data.Batch
			if err == nil {
				b, err = batch(in, out, inputs, labels)
				if own, ok := ds.(train.DatasetCustomOwnership); !ok || own.IsOwnershipTransferred() {
					for _, t := range append(append([]*tensors.Tensor{}, in...), out...) {
						err = errors.Join(err, t.FinalizeAll())
					}
				}
			}
			if err != nil {
				yield(data.Batch{}, fmt.Errorf("gomlxdata: dataset %q: %w", ds.Name(), err))
				return
			}
			b.At = at
			at += b.Size
			if !yield(b, nil) {
				return
			}
		}
	}
}

func batch(in, out []*tensors.Tensor, inputs, labels []string) (data.Batch, error) {
	if len(in) != len(inputs) || len(out) != len(labels) {
		return data.Batch{}, fmt.Errorf("%d inputs and %d labels, expected %q and %q", len(in), len(out), inputs, labels)
	}
	var b data.Batch
	for i, t := range in {
		f, err := field(inputs[i], t)
		if err != nil {
			return data.Batch{}, err
		}
		b.Fields = append(b.Fields, f)
	}
	for i, t := range out {
		f, err := field(labels[i], t)
		if err != nil {
			return data.Batch{}, err
		}
		b.Fields = append(b.Fields, f)
	}
	if len(b.Fields) > 0 {
		b.Size = b.Fields[0].Array.Len()
	}
	return b, nil
}

func field(name string, t *tensors.Tensor) (data.Field, error) {
	if err := t.CheckValid(); err != nil {
		return data.Field{}, fmt.Errorf("field %q: %w", name, err)
	}
	f := data.Named(name, nil, append([]int{}, t.Shape().Dimensions...)...)
	err := t.ConstFlatData(func(flat any) {
		from := reflect.ValueOf(flat)
		f.Array.Flat = reflect.AppendSlice(reflect.MakeSlice(from.Type(), 0, from.Len()), from).Interface()
	})
	if err == nil {
		err = f.Array.Check()
	}
	if err != nil {
		return data.Field{}, fmt.Errorf("field %q, %s: %w", name, t.Shape(), err)
	}
	return f, nil
}

// Dataset is batches as a GoMLX dataset. It is for one goroutine at a time, as all of GoMLX's datasets are.
type Dataset struct {
	name           string
	source         iter.Seq2[data.Batch, error]
	inputs, labels []string
	next           func() (data.Batch, error, bool)
	stop           func()
	ended          bool
}

var _ train.Dataset = (*Dataset)(nil)

// To gives the batches of source to GoMLX's trainer: the fields of the given names as inputs and labels, in that order, copied into
// tensors. Reset begins source anew. Close it if it is left before its end.
func To(name string, source iter.Seq2[data.Batch, error], inputs, labels []string) *Dataset {
	return &Dataset{name: name, source: source, inputs: inputs, labels: labels}
}

// Name is the dataset's name.
func (d *Dataset) Name() string { return d.name }

// Reset goes back to the start of the source.
func (d *Dataset) Reset() {
	d.Close()
	d.ended = false
}

// Close ends the source, if it is being read. Until a Reset there are no more batches.
func (d *Dataset) Close() {
	if d.stop != nil {
		d.stop()
	}
	d.next, d.stop, d.ended = nil, nil, true
}

// Yield is the next batch as tensors, the caller's own; io.EOF behind the last one. The spec is nil.
func (d *Dataset) Yield() (spec any, inputs, labels []*tensors.Tensor, err error) {
	if d.ended {
		return nil, nil, nil, io.EOF
	}
	if d.next == nil {
		if d.source == nil {
			return nil, nil, nil, errors.New("gomlxdata: yield: there is no source (nil)")
		}
		d.next, d.stop = iter.Pull2(d.source)
	}
	b, err, ok := d.next()
	if !ok {
		d.Close()
		return nil, nil, nil, io.EOF
	}
	if err == nil {
		inputs, err = tensorsOf(b, d.inputs)
	}
	if err == nil {
		labels, err = tensorsOf(b, d.labels)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("gomlxdata: dataset %q: %w", d.name, err)
	}
	return nil, inputs, labels, nil
}

func tensorsOf(b data.Batch, names []string) ([]*tensors.Tensor, error) {
	var all []*tensors.Tensor
	for _, name := range names {
		a, err := b.Get(name)
		if err == nil {
			err = a.Check()
		}
		if err != nil {
			return nil, err
		}
		for _, d := range a.Dims {
			if d == 0 {
				return nil, fmt.Errorf("field %q has dims %v; GoMLX takes no axis of length 0", name, a.Dims)
			}
		}
		from := reflect.ValueOf(a.Flat)
		t := tensors.FromShape(shapes.Make(dtypes.FromGoType(from.Type().Elem()), a.Dims...))
		if err := t.MutableFlatData(func(flat any) { reflect.Copy(reflect.ValueOf(flat), from) }); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}
