package flaxlike

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

func (m *Model) before(s step, batch data.Batch) error {
	switch {
	case s.of == m.predict:
	case m.set.noTests != nil:
		return m.set.noTests
	case s.of != m.train:
	case len(m.set.losses) == 0 && !m.set.innerLosses:
		return errors.New("the model has no loss: give New one, as WithLoss(\"mse\")\n  a network that reports its own loss by managed.AddLoss needs WithInnerLosses()")
	case len(m.set.losses) == 0 && (m.set.weights != "" || len(m.set.classWeights) > 0):
		return errors.New("WithSampleWeights and WithClassWeights weigh the losses given by WithLoss, and the network reports the only ones, which are not weighed: leave the weights out, or weigh within the network")
	default:
		if err := m.noTraining(); err != nil {
			return err
		}
	}
	bounds := m.seen.allBounds()
	m.seen.mu.Lock()
	looked := len(bounds) + len(m.seen.weighed)
	m.seen.mu.Unlock()
	switch {
	case s.set == nil:
		if err := m.seen.look(batch, false); err != nil || s.stream == nil || m.set.weights == "" || m.state.Job() != nil { // other ranks may have examples
			return err
		}
		s.stream.look(batch, m.set.weights)
		if _, last, _ := batch.InEpoch(); last && s.of == m.train {
			return s.stream.check(m.set.weights)
		}
		return nil
	case *s.looked == looked:
		return nil
	}
	err := lookAt(bounds, data.Batch{Fields: s.set.Fields(), Size: s.set.Len()}, "the set", false)
	if err == nil {
		err = m.checkWeights(s)
	}
	if err == nil {
		*s.looked = looked
	}
	return err
}

func (s *seen) look(batch data.Batch, inputs bool) error {
	s.mu.Lock()
	bounds, whole, looked := s.bounds, s.whole, s.looked
	s.mu.Unlock()
	set := batch.Resident
	switch {
	case set != nil && set == whole && looked == len(bounds): // the whole set is checked once
		return nil
	case batch.Check() != nil:
		return nil
	case set == nil:
		return lookAt(bounds, batch, "the batch", inputs)
	}
	err := lookAt(bounds, data.Batch{Fields: set.Fields(), Size: set.Len()}, "the set", inputs)
	if err == nil && !inputs {
		s.mu.Lock()
		s.whole, s.looked = set, len(bounds)
		s.mu.Unlock()
	}
	return err
}

func (m *Model) checkWeights(s step) error {
	batch := data.Batch{Fields: s.set.Fields(), Size: s.set.Len()}
	if weights, err := batch.Field(m.set.weights); m.set.weights != "" && err == nil {
		of, n := bound{weights: m.set.weights}, weights.Size()
		some := !isFloat(weights.Flat) || n == 0
		for at := 0; at < n && !some; at++ {
			some = counts(batch, of, weights, at)
		}
		if !some {
			return fmt.Errorf("field %q: the sample weights of all %d examples in the set are 0, so none would count: %w", m.set.weights, s.set.Len(), ErrValue)
		}
	}
	if s.of != m.train || len(m.set.classWeights) == 0 {
		return nil
	}
	m.seen.mu.Lock()
	fields := m.seen.weighed
	m.seen.mu.Unlock()
	for _, name := range fields {
		labels, err := batch.Field(name)
		if err != nil || labels.Size() == 0 {
			continue
		}
		some, there, missing := false, map[int]bool{}, len(m.set.classWeights)
		flat, number := reflect.ValueOf(labels.Flat), reflect.TypeFor[float64]()
		if !flat.Type().Elem().ConvertibleTo(number) {
			continue
		}
		for at := 0; at < flat.Len() && (!some || missing > 0); at++ {
			class := int(flat.Index(at).Convert(number).Float())
			if there[class] || !counts(batch, bound{weights: m.set.weights}, labels, at) {
				continue
			}
			there[class] = true
			w, named := m.set.classWeights[class]
			if some = some || !named || w > 0; named {
				missing--
			}
		}
		for _, class := range slices.Sorted(maps.Keys(m.set.classWeights)) {
			if !there[class] && !s.part {
				return fmt.Errorf("WithClassWeights names class %d, which no counted example of the set has: field %q has the classes %v: %w: "+
					"leave it out, or check the numbering of the classes", class, name, slices.Sorted(maps.Keys(there)), ErrValue)
			}
		}
		if !some {
			return fmt.Errorf("WithClassWeights: all classes that the set has, %v in field %q, weigh 0, so no example would count: %w", slices.Sorted(maps.Keys(there)), name, ErrValue)
		}
	}
	return nil
}
