package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

type repeats struct {
	seconds []float64
	cpu     []float64 // seconds, all threads
}

// On a shared machine, processor time is more reliable than wall time.
func (b *bench) measure(ctx context.Context, n int, f func() error) (r repeats, err error) {
	for range n {
		if err := b.turn(ctx); err != nil {
			return r, err
		}
		cpu, start := cpuSeconds(), time.Now()
		if err := f(); err != nil {
			return r, err
		}
		r.seconds, r.cpu = append(r.seconds, time.Since(start).Seconds()), append(r.cpu, cpuSeconds()-cpu)
	}
	return r, nil
}

func (b *bench) turn(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil || b.turns == nil {
		return err
	}
	fmt.Fprintln(b.stdout, "ready")
	if !b.turns.Scan() {
		return errors.Join(errors.New("-turns: standard input ended before the last repeat"), b.turns.Err())
	}
	return nil
}

func (r repeats) each(figure func(seconds float64) float64) []float64 {
	values := make([]float64, len(r.seconds))
	for i, s := range r.seconds {
		values[i] = figure(s)
	}
	return values
}

func machineLoad() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}
