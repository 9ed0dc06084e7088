package managed

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"weak"

	"github.com/gomlx/compute/dtypes"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// packedDType is the type in which numbers are logged, float64 ones too: one small array of one type.
const packedDType = dtypes.Float32

// remote is an array that stays on the device until it is read, or was read by its run: then device is nil.
type remote struct {
	device *onDevice
	value  *Tensor
	flat   any // its elements
	err    error
}

func (r *remote) read() error {
	if r.device == nil {
		return nil
	}
	r.device.mu.Lock()
	defer r.device.mu.Unlock()
	if r.device.buffer == nil {
		return r.err
	}
	t, err := r.device.strategy.Fetch(r.device.buffer)
	if err == nil {
		err = t.ConstFlatData(func(flat any) { r.flat = flat })
	}
	if err = errors.Join(err, r.device.free()); err != nil {
		r.err = fmt.Errorf("managed: read logs: %w", err)
	}
	r.value = t
	return r.err
}

// output is an array as a [loop.Payload].
type output struct{ remote }

func (o *output) Any() (any, error) {
	if err := o.read(); err != nil {
		return nil, err
	}
	return o.value, nil
}

func (o *output) Float() (float64, error) {
	if err := o.read(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("managed: %s is not a number; its Any gives the tensor", o.value.Shape())
}

// Array reads an array that a step reported by [Builder.Output], by the name that [loop.Logs.Get] takes; it waits for
// the step. The array is a copy.
func Array(logs loop.Logs, name string) (data.Array, error) {
	e, err := logs.Get(name)
	if err != nil {
		return data.Array{}, fmt.Errorf("managed: array: %w", err)
	}
	p, ok := e.Value.(loop.Payload)
	if !ok {
		return data.Array{}, fmt.Errorf("managed: array: %s is a single number: Logs.Float reads it", e.Path())
	}
	v, err := p.Any()
	if err != nil {
		return data.Array{}, err
	}
	t, ok := v.(*Tensor)
	if !ok {
		return data.Array{}, fmt.Errorf("managed: array: %s is a %T, expected what Builder.Output reports", e.Path(), v)
	}
	a, err := ArrayOf(t)
	if err != nil {
		return data.Array{}, fmt.Errorf("managed: array: %s, %w", e.Path(), err)
	}
	return a, nil
}

// ArrayOf copies a tensor, such as [State.Value] gives.
func ArrayOf(t *Tensor) (data.Array, error) {
	a := data.Array{Dims: slices.Clone(t.Shape().Dimensions)}
	err := t.ConstFlatData(func(flat any) {
		v := reflect.ValueOf(flat)
		a.Flat = reflect.AppendSlice(reflect.Zero(v.Type()), v).Interface()
	})
	if err == nil {
		err = a.Check()
	}
	if err != nil {
		return data.Array{}, fmt.Errorf("%s: %w\n  a dtype that Go has not is made another one in the graph, by graph.ConvertDType", t.Shape(), err)
	}
	return a, nil
}

// packed is the logs of a step, or of a block of them.
type packed struct {
	remote
	scalars []scalar
}

// onDevice is the array where the strategy has it. It is apart from the logs so that it can be freed without them.
type onDevice struct {
	strategy strategies.Strategy
	mu       sync.Mutex        // a writer in the background reads while the training goes on
	buffer   strategies.Buffer // nil once freed
}

// free frees the array, if it was not; mu is held.
func (d *onDevice) free() error {
	b := d.buffer
	d.buffer = nil
	if b == nil {
		return nil
	}
	return d.strategy.Free(b)
}

// scalar is one number of a packed array, as a [loop.Value].
type scalar struct {
	of *packed
	at int
}

func (v *scalar) Float() (float64, error) {
	if err := v.of.read(); err != nil {
		return 0, err
	}
	return float64(v.of.flat.([]float32)[v.at]), nil
}

// newLogs makes the logs of some steps, to be read later: the array has a row for each.
func newLogs(s strategies.Strategy, b strategies.Buffer, layout []logged, steps int) (*packed, []loop.Logs) {
	n := len(layout)
	p := &packed{scalars: make([]scalar, steps*n)}
	if flat, ok := xla.OnHost(b); ok {
		p.flat = flat
	} else {
		p.device = &onDevice{strategy: s, buffer: b}
	}
	entries, logs := make([]loop.Entry, steps*n), make([]loop.Logs, steps)
	for i := range entries {
		p.scalars[i] = scalar{p, i}
		entries[i] = loop.Entry{Collection: layout[i%n].collection, Name: layout[i%n].name, Value: &p.scalars[i]}
	}
	for i := range logs {
		logs[i] = loop.NewLogs(entries[i*n : (i+1)*n : (i+1)*n])
	}
	return p, logs
}

// maxUnread bounds how many arrays of logs wait on the device: a history of a million steps must not hold a million
// device buffers. A step, or a block of steps, has one for all its numbers, and one for each [Builder.Output]. At twice
// as many the older half is read, or freed where nobody has the logs any more.
const maxUnread = 256

// unread are the logs that nobody has read yet, oldest first.
type unread struct {
	mu    sync.Mutex
	queue []waiting
}

// waiting holds a buffer, and the logs only as long as somebody else does: logs that were dropped unread are freed
// and not fetched.
type waiting struct {
	device *onDevice
	logs   weak.Pointer[remote]
}

func (u *unread) add(r *remote) error {
	u.mu.Lock()
	u.queue = append(u.queue, waiting{r.device, weak.Make(r)})
	n := len(u.queue)
	u.mu.Unlock()
	if n < 2*maxUnread {
		return nil
	}
	return u.drain(maxUnread)
}

// drain reads or frees the oldest until n are left.
func (u *unread) drain(n int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var first error
	cut := max(len(u.queue)-n, 0)
	for _, w := range u.queue[:cut] {
		if p := w.logs.Value(); p != nil {
			_ = p.read() // an error stays with the logs, for whoever reads them
			continue
		}
		w.device.mu.Lock()
		err := w.device.free()
		w.device.mu.Unlock()
		if err != nil && first == nil {
			first = err
		}
	}
	u.queue = append(u.queue[:0], u.queue[cut:]...)
	return first
}
