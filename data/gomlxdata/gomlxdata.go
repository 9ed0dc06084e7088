package gomlxdata

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"

	"github.com/lazo-ml/lazo/data"
)

// From yields the batches of a GoMLX dataset; its inputs and labels become fields with the given names, in that
// order. Each iteration is one pass of ds; iterate one at a time. Values are copied and the tensors freed. An error
// of ds ends the sequence. A batch's Spec is ignored.
func From(ds train.Dataset, inputs, labels []string) iter.Seq2[data.Batch, error] {
	inputs = slices.Clone(inputs)
	labels = slices.Clone(labels)
	return func(yield func(data.Batch, error) bool) {
		if ds == nil {
			yield(data.Batch{}, errors.New("gomlxdata: from: there is no dataset (nil)"))
			return
		}
		at := 0
		for theirs, err := range ds.Iter() {
			var b data.Batch
			if err == nil {
				b, err = batch(theirs.Inputs, theirs.Labels, inputs, labels)
				err = errors.Join(err, theirs.Finalize())
			}
			if err != nil {
				yield(data.Batch{}, fmt.Errorf("gomlxdata: dataset %q: %w", ds.Name(), err))
				return
			}
			b.At = at
			if len(b.Fields) > 0 {
				at += b.Fields[0].Array.Len()
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

func batch(in, out []*tensors.Tensor, inputs, labels []string) (data.Batch, error) {
	if len(in) != len(inputs) || len(out) != len(labels) {
		return data.Batch{}, fmt.Errorf("got %d inputs and %d labels, expected %q and %q", len(in), len(out), inputs, labels)
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
	b.Size = b.Samples()
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

// To makes a dataset for GoMLX's trainer: the named fields of source's batches become inputs and labels, in that order,
// copied into tensors that the reader owns. Each pass iterates source once; an error ends it.
func To(name string, source iter.Seq2[data.Batch, error], inputs, labels []string) train.Dataset {
	inputs = slices.Clone(inputs)
	labels = slices.Clone(labels)
	return dataset{name, source, inputs, labels}
}

type dataset struct {
	name           string
	source         iter.Seq2[data.Batch, error]
	inputs, labels []string
}

func (d dataset) Name() string { return d.name }

func (d dataset) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		if d.source == nil {
			yield(train.Batch{}, fmt.Errorf("gomlxdata: dataset %q: there is no source (nil)", d.name))
			return
		}
		for ours, err := range d.source {
			var b train.Batch
			if err == nil {
				b.Inputs, err = tensorsOf(ours, d.inputs)
			}
			if err == nil {
				b.Labels, err = tensorsOf(ours, d.labels)
			}
			if err != nil {
				err = errors.Join(fmt.Errorf("gomlxdata: dataset %q: %w", d.name, err), b.Finalize())
				b = train.Batch{}
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

func tensorsOf(b data.Batch, names []string) ([]*tensors.Tensor, error) {
	var all []*tensors.Tensor
	for _, name := range names {
		a, err := b.Field(name)
		if err == nil {
			err = a.Check()
		}
		if err != nil {
			return all, err
		}
		from := reflect.ValueOf(a.Flat)
		t := tensors.FromShape(shapes.Make(dtypes.FromGoType(from.Type().Elem()), a.Dims...))
		all = append(all, t)
		if err := t.MutableFlatData(func(flat any) { reflect.Copy(reflect.ValueOf(flat), from) }); err != nil {
			return all, err
		}
	}
	return all, nil
}
